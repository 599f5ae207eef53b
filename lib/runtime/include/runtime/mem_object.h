// MemObject: a buffer or sub-buffer: a range of a storage, with what the application said when it made it.
// Immutable but for maps and callbacks. Any thread.
#pragma once

#include <base/mutex.h>
#include <base/recycled.h>
#include <memory/storage.h>
#include <runtime/context.h>

#include <optional>
#include <vector>

namespace polder::runtime {

class MemObject final : public Object, public Recycled<MemObject> {
public:
    static constexpr Kind kind = Kind::mem_object;
    static constexpr Status invalid = Status::invalid_mem_object;

    using Destructor = void(CL_CALLBACK*)(cl_mem object, void* user);

    // Arguments are valid. `properties` with the terminating zero, or empty.
    static Result<Ref<MemObject>> create_buffer(Ref<Context> context, cl_mem_flags flags, uint64_t size,
                                                void* host_pointer, std::vector<cl_mem_properties> properties);
    static Result<Ref<MemObject>> create_sub_buffer(Ref<MemObject> parent, cl_mem_flags flags, ByteRange range);
    ~MemObject() override;

    [[nodiscard]] Context& context() const { return *context_; }
    [[nodiscard]] memory::Storage& storage() const { return *storage_; }
    [[nodiscard]] MemObject* parent() const { return parent_.get(); }
    [[nodiscard]] cl_mem_flags flags() const { return flags_; }
    [[nodiscard]] void* host_pointer() const { return host_pointer_; }
    [[nodiscard]] const std::vector<cl_mem_properties>& properties() const { return properties_; }
    [[nodiscard]] uint64_t size() const { return range_.size(); }
    // Within the storage.
    [[nodiscard]] ByteRange range() const { return range_; }
    [[nodiscard]] uint64_t origin() const { return range_.begin; }

    void add_destructor(Destructor function, void* user);

    // Maps the application holds: clEnqueueUnmapMemObject finds what the pointer maps.
    struct Map {
        std::byte* pointer;
        memory::StorageRect rect;
        memory::MapAccess access;
    };
    // invalid_operation when bytes that are mapped for writing would be mapped for writing again.
    [[nodiscard]] Result<void> add_map(const Map& map);
    // Takes back what take_map answered.
    void return_map(const Map& map);
    // Removes and answers one map with this pointer; null when there is none.
    [[nodiscard]] std::optional<Map> take_map(const void* pointer);
    [[nodiscard]] uint32_t map_count() const;

private:
    MemObject(Ref<Context> context, Ref<MemObject> parent, Ref<memory::Storage> storage, cl_mem_flags flags,
              ByteRange range, void* host_pointer, std::vector<cl_mem_properties> properties);

    struct DestructorCallback {
        Destructor function;
        void* user;
    };

    Ref<Context> context_;
    Ref<MemObject> parent_;
    Ref<memory::Storage> storage_;
    cl_mem_flags flags_;
    ByteRange range_;
    void* host_pointer_;
    std::vector<cl_mem_properties> properties_;
    mutable Mutex mutex_;
    std::vector<Map> maps_ POLDER_GUARDED_BY(mutex_);
    std::vector<DestructorCallback> destructors_ POLDER_GUARDED_BY(mutex_);
};

} // namespace polder::runtime
