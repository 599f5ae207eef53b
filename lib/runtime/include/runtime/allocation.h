// Allocation: memory that the application knows by an address, not by a handle. Shared virtual memory, unified shared memory,
// and buffers whose address on a device the application may ask for.
//
// The bytes are a storage of the memory layer, pinned in one memory space: a command that uses the address uses (storage, range),
// as with buffers. An allocation has no reference to its context. Immutable, except for its maps and for being freed once. Any thread.
#pragma once

#include <base/mutex.h>
#include <base/ref.h>
#include <memory/storage.h>
#include <runtime/mem_object.h>

#include <atomic>
#include <vector>

namespace polder::runtime {

// One map by clEnqueueSVMMap.
class AllocationMap final : public HeldMap<AllocationMap> {
public:
    AllocationMap(const void* address, ByteRange bytes, memory::MapAccess how)
        : pointer(address), range(bytes), access(how) {}
    const void* const pointer;
    const ByteRange range;  // within the allocation
    const memory::MapAccess access;

    [[nodiscard]] bool writes() const { return access != memory::MapAccess::read; }
    [[nodiscard]] bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

private:
    friend class Allocation;
    std::atomic<bool> has_failed_{false};
};

class Allocation final : public RefCounted {
public:
    // svm: clSVMAlloc. host, device, shared: cl_intel_unified_shared_memory. buffer: a buffer with CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT.
    enum class Kind : uint8_t { svm, host, device, shared, buffer };
    struct Description {
        Kind kind = Kind::svm;
        uint64_t address = 0;  // the address that the application and kernels use
        uint64_t size = 0;  // bytes
        SpaceId space;  // kernels on devices that compute in this memory may use the address
        SpaceSet in_place;  // kernels on devices that compute in these memories may use it, too
        Device* device = nullptr;  // the device that the application passed; null: none
        uint64_t flags = 0;  // cl_mem_alloc_flags_intel
    };
    Allocation(const Description& description, Ref<memory::Storage> storage)
        : description_(description), storage_(std::move(storage)) {}

    [[nodiscard]] Kind kind() const { return description_.kind; }
    [[nodiscard]] uint64_t address() const { return description_.address; }
    [[nodiscard]] uint64_t size() const { return description_.size; }
    [[nodiscard]] uint64_t end() const { return address() + size(); }
    [[nodiscard]] SpaceId space() const { return description_.space; }
    // Whether kernels on devices that compute in `space` may use the address.
    [[nodiscard]] bool is_for_kernels_in(SpaceId space) const {
        return space == description_.space || description_.in_place.contains(space);
    }
    [[nodiscard]] Device* device() const { return description_.device; }
    [[nodiscard]] uint64_t flags() const { return description_.flags; }
    [[nodiscard]] bool contains(uint64_t address) const { return address - this->address() < size(); }
    // Whether the host may access the bytes at any time without a command, so that no other memory may have a newer version.
    [[nodiscard]] bool is_always_on_host() const {
        return description_.kind == Kind::host || description_.kind == Kind::shared;
    }

    // Null after the allocation was freed.
    [[nodiscard]] Ref<memory::Storage> storage() const;
    // The bytes [begin, end) as a buffer of `context`, for one command; null once the allocation is freed. The buffer's
    // host_pointer() is the address of its first byte.
    [[nodiscard]] Ref<MemObject> view(Context& context, ByteRange range) const;
    [[nodiscard]] Ref<MemObject> view(Context& context) const { return view(context, {0, size()}); }

    // Frees the allocation. Its memory stays until every buffer and command that uses it has ended. Returns the storage, which the caller
    // releases; null when another thread has freed the allocation.
    [[nodiscard]] Ref<memory::Storage> take_storage() const;

    // The maps of the application. clEnqueueSVMMap adds one, clEnqueueSVMUnmap removes it.
    void add_map(Ref<AllocationMap> map) const;
    // Called when the map command failed, so that the bytes were never mapped.
    void cancel_map(AllocationMap& map) const;
    // Called when the unmap command failed: the bytes stay mapped, unless the map command failed too.
    void return_map(Ref<AllocationMap> map) const;
    // Removes and returns the newest map at `pointer`, if possible one for writing; null when there is none.
    [[nodiscard]] Ref<AllocationMap> take_map(const void* pointer) const;

private:
    const Description description_;
    mutable Mutex mutex_;
    mutable Ref<memory::Storage> storage_ POLDER_GUARDED_BY(mutex_);
    mutable HeldMaps<AllocationMap> maps_ POLDER_GUARDED_BY(mutex_);
};

// An address from the application, and the allocation that contained it at that time, if any. The allocation may have been freed
// since, and another one may have the address.
struct KnownAddress {
    const void* pointer = nullptr;
    Ref<const Allocation> allocation;
};

}  // namespace polder::runtime
