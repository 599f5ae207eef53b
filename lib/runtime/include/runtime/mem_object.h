// MemObject: a buffer, sub-buffer, image or pipe: a range of a storage, with the properties that the application created it with.
// Immutable, except for maps and callbacks. Any thread.
#pragma once

#include <base/mutex.h>
#include <base/rare.h>
#include <base/recycled.h>
#include <memory/storage.h>
#include <runtime/context.h>
#include <runtime/external_memory.h>
#include <runtime/held_maps.h>
#include <runtime/image.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace polder::runtime {

// One map of a buffer or image: from clEnqueueMap* until the unmap command has been submitted.
class MapRecord final : public HeldMap<MapRecord> {
public:
    MapRecord(std::byte* address, const memory::StorageRect& bytes, memory::MapAccess how, memory::MapPin pin)
        : pointer(address), rect(bytes), access(how), pin_(std::move(pin)) {}
    std::byte* const pointer;
    const memory::StorageRect rect;
    const memory::MapAccess access;

    [[nodiscard]] bool writes() const { return access != memory::MapAccess::read; }
    // The map command failed: the host never had the bytes.
    [[nodiscard]] bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

private:
    friend class MemObject;
    const memory::MapPin pin_;
    std::atomic<bool> has_failed_{false};
};

inline constexpr uint32_t pipe_packet_bytes_max = 65536;

// Of a pipe.
struct PipeShape {
    uint32_t packet_bytes;
    uint32_t packets_max;
};

class MemObject final : public Object, public Recycled<MemObject> {
public:
    static constexpr Kind kind = Kind::mem_object;
    static constexpr Status invalid = Status::invalid_mem_object;

    using Destructor = void(CL_CALLBACK*)(cl_mem object, void* user);

    // Arguments are valid, `range` is within the parent. `properties` with the terminating zero, or empty.
    static Result<Ref<MemObject>> create_buffer(Ref<Context> context, cl_mem_flags flags, uint64_t size,
                                                void* host_pointer, std::vector<cl_mem_properties>&& properties);
    static Result<Ref<MemObject>> create_sub_buffer(Ref<MemObject> parent, cl_mem_flags flags, ByteRange range);
    // A buffer of bytes that belong to another object: a range of an allocation (runtime/allocation.h), whose first byte is at
    // `host_pointer`.
    static Ref<MemObject> create_view(Ref<Context> context, Ref<memory::Storage> storage, cl_mem_flags flags,
                                      ByteRange range, void* host_pointer, std::vector<cl_mem_properties> properties);
    // A buffer of bytes that were imported; `memory` has at least `size`.
    static Result<Ref<MemObject>> create_external(Ref<Context> context, Ref<ExternalMemory> memory, cl_mem_flags flags,
                                                  uint64_t size, std::vector<cl_mem_properties> properties);
    // An image likewise, in rows with the pitches of `shape`.
    static Result<Ref<MemObject>> create_external_image(Ref<Context> context, Ref<ExternalMemory> memory,
                                                        cl_mem_flags flags, const ImageShape& shape,
                                                        std::vector<cl_mem_properties> properties);
    // `source`: the buffer or image whose bytes the image shows, whose range is large enough; null: it has bytes of its own,
    // and host_pointer, if flags ask for it, points to rows with the pitches of `shape`.
    static Result<Ref<MemObject>> create_image(Ref<Context> context, Ref<MemObject> source, cl_mem_flags flags,
                                               const ImageShape& shape, void* host_pointer,
                                               std::vector<cl_mem_properties> properties);
    // An empty pipe. Its bytes are a storage like a buffer's, with the layout of polder/pipe_abi.h.
    static Result<Ref<MemObject>> create_pipe(Ref<Context> context, cl_mem_flags flags, const PipeShape& shape,
                                              std::vector<cl_mem_properties> properties);
    ~MemObject() override;

    [[nodiscard]] Context& context() const { return *context_; }
    [[nodiscard]] memory::Storage& storage() const { return *storage_; }
    // The buffer of a sub-buffer, or the object that an image was created from.
    [[nodiscard]] MemObject* parent() const { return parent_.get(); }
    // Null for what is no pipe.
    [[nodiscard]] const PipeShape* pipe() const { return pipe_ ? &*pipe_ : nullptr; }
    [[nodiscard]] bool is_buffer() const { return !image_ && !pipe_; }
    // Null for what is no image.
    [[nodiscard]] const ImageShape* image() const { return image_.get(); }
    // Null for what was not created from a descriptor.
    [[nodiscard]] ExternalMemory* external() const { return external_.get(); }
    [[nodiscard]] cl_mem_flags flags() const { return flags_; }
    [[nodiscard]] void* host_pointer() const { return host_pointer_; }
    // Its bytes, or those of the buffer or image that it is a part of, are memory of the application (CL_MEM_USE_HOST_PTR). Shared virtual
    // memory is the library's.
    [[nodiscard]] bool is_in_application_memory() const {
        const MemObject* root = this;
        while (root->parent_)
            root = root->parent_.get();
        return (root->flags_ & CL_MEM_USE_HOST_PTR) != 0 && !root->is_view_;
    }
    [[nodiscard]] const std::vector<cl_mem_properties>& properties() const { return properties_; }
    [[nodiscard]] uint64_t size() const { return range_.size(); }
    // Within the storage.
    [[nodiscard]] ByteRange range() const { return range_; }
    [[nodiscard]] uint64_t origin() const { return range_.begin; }
    // CL_MEM_OFFSET: within the buffer that this one is a part of.
    [[nodiscard]] uint64_t offset_in_parent() const { return parent_ ? range_.begin - parent_->range_.begin : 0; }

    // CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT: memory on every device of the context, at an address that the buffer keeps. Once, after
    // it was created. mem_object_allocation_failure.
    [[nodiscard]] Result<void> fix_addresses();
    // Of the first byte, one for each device of the context; empty unless the buffer, or the one it is a part of, has them.
    [[nodiscard]] std::vector<uint64_t> device_addresses() const;

    // Calls `function` when the object is destroyed and the commands that use it are complete, on the callback thread
    // (base/completion.h) or on the thread that releases it. out_of_resources when there can be no callback thread.
    [[nodiscard]] Result<void> add_destructor(Destructor function, void* user);

    // The maps that the application holds. clEnqueueMapBuffer adds a record, clEnqueueUnmapMemObject takes it.
    // invalid_operation when bytes that are mapped for writing would be mapped for writing again.
    [[nodiscard]] Result<Ref<MapRecord>> add_map(std::byte* pointer, const memory::StorageRect& rect,
                                                 memory::MapAccess access, memory::MapPin pin);
    // The map command failed: its record is removed, and an unmap command that has taken it fails.
    void cancel_map(MapRecord& record);
    // The unmap command that took the record failed: the bytes are still mapped, unless mapping them failed too.
    void return_map(Ref<MapRecord> record);
    // Removes and returns one record of a map at `pointer`; null when there is none. Of several, the newest one for writing,
    // so that the host's writes become visible no later than the application expects.
    [[nodiscard]] Ref<MapRecord> take_map(const void* pointer);
    [[nodiscard]] uint32_t map_count() const;

private:
    MemObject(Ref<Context>&& context, Ref<MemObject>&& parent, Ref<memory::Storage>&& storage, cl_mem_flags flags,
              ByteRange range, void* host_pointer, std::vector<cl_mem_properties>&& properties);

    void on_exposed() override {
        if (is_in_application_memory()) [[unlikely]]
            storage_->add_handle();
    }
    void retain_for_handle() override {
        on_exposed();
        retain();
    }
    void release_for_handle() override {
        if (is_in_application_memory()) [[unlikely]]
            storage_->remove_handle();
        release();
    }

    struct Destruction;
    struct FixedAddresses;
    void forget_addresses() noexcept;

    Ref<Context> context_;
    Ref<MemObject> parent_;
    Ref<memory::Storage> storage_;
    cl_mem_flags flags_;
    ByteRange range_;
    void* host_pointer_;
    std::vector<cl_mem_properties> properties_;
    Rare<const ImageShape> image_;
    std::optional<PipeShape> pipe_;
    mutable Mutex mutex_;
    HeldMaps<MapRecord> maps_ POLDER_GUARDED_BY(mutex_);
    bool is_view_ = false;
    Rare<FixedAddresses> fixed_;  // null: none
    std::unique_ptr<Destruction> destruction_ POLDER_GUARDED_BY(mutex_);  // null: nothing to do
    Ref<ExternalMemory> external_;
};

}  // namespace polder::runtime
