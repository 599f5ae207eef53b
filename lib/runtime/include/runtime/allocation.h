// Allocation: memory that the application knows by an address, not by a handle. Shared virtual memory, unified shared memory,
// and buffers whose address on a device the application may ask for.
//
// The bytes are a storage of the memory layer, pinned in one memory space: a command that uses the address uses (storage, range),
// as with buffers. An allocation does not keep its context. Immutable, but that it is freed once, and for its maps. Any thread.
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
    // svm: clSVMAlloc. host, device, shared: cl_intel_unified_shared_memory. buffer: one with CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT.
    enum class Kind : uint8_t { svm, host, device, shared, buffer };
    struct Description {
        Kind kind = Kind::svm;
        uint64_t address = 0;  // as the application and kernels see it
        uint64_t size = 0;  // bytes
        SpaceId space;  // kernels on devices that compute there may follow the address
        Device* device = nullptr;  // that the application named; null: none
        uint64_t flags = 0;  // cl_mem_alloc_flags_intel
    };
    Allocation(const Description& description, Ref<memory::Storage> storage)
        : description_(description), storage_(std::move(storage)) {}

    [[nodiscard]] Kind kind() const { return description_.kind; }
    [[nodiscard]] uint64_t address() const { return description_.address; }
    [[nodiscard]] uint64_t size() const { return description_.size; }
    [[nodiscard]] uint64_t end() const { return address() + size(); }
    [[nodiscard]] SpaceId space() const { return description_.space; }
    [[nodiscard]] Device* device() const { return description_.device; }
    [[nodiscard]] uint64_t flags() const { return description_.flags; }
    [[nodiscard]] bool contains(uint64_t address) const { return address - this->address() < size(); }
    // The host uses the bytes at any time, without commands: they must never be newer anywhere else.
    [[nodiscard]] bool is_always_on_host() const {
        return description_.kind == Kind::host || description_.kind == Kind::shared;
    }

    // Null once the allocation is freed.
    [[nodiscard]] Ref<memory::Storage> storage() const;
    // The bytes [begin, end) as a buffer of `context`, for one command; null once the allocation is freed. The buffer's
    // host_pointer() is the address of its first byte.
    [[nodiscard]] Ref<MemObject> view(Context& context, ByteRange range) const;
    [[nodiscard]] Ref<MemObject> view(Context& context) const { return view(context, {0, size()}); }

    // Frees: the memory lives until every buffer and every command that uses it is gone. Returns what is left to be released.
    [[nodiscard]] Ref<memory::Storage> take_storage() const;

    // The maps that the application holds. clEnqueueSVMMap adds one, clEnqueueSVMUnmap takes it.
    void add_map(Ref<AllocationMap> map) const;
    // The map command failed: the host never had the bytes.
    void cancel_map(AllocationMap& map) const;
    // The unmap command failed: the bytes are still mapped, unless mapping them failed too.
    void return_map(Ref<AllocationMap> map) const;
    // Removes and returns the newest map at `pointer`, if possible one for writing; null when there is none.
    [[nodiscard]] Ref<AllocationMap> take_map(const void* pointer) const;

private:
    const Description description_;
    mutable Mutex mutex_;
    mutable Ref<memory::Storage> storage_ POLDER_GUARDED_BY(mutex_);
    mutable HeldMaps<AllocationMap> maps_ POLDER_GUARDED_BY(mutex_);
};

// An address that the application gave, and the allocation that it was in at that time, if any. The allocation may be freed
// since, and another one may be there.
struct KnownAddress {
    const void* pointer = nullptr;
    Ref<const Allocation> allocation;
};

}  // namespace polder::runtime
