// InPlaceHeap: host memory that the kernels of some devices use in place, at the host's addresses (driver::HostRegions::are_for_kernels).
//
// Regions of at least 4 MiB are registered with all these devices. Blocks below 4 MiB share regions (bufalloc); a larger block has a region
// of its own. An empty region is kept for the next small block. Registering takes about 0.1 ms for each MiB. Regions count against the
// limit of host memory.
//
// Owned by a context and by the memory that was allocated here; the devices outlive it. Any thread. A block may be freed only when no operation
// uses it any more. mem_object_allocation_failure when the system or the limit has no memory, or a device
// refuses to register it.
#pragma once

#include <base/mutex.h>
#include <bufalloc/region_allocator.h>
#include <memory/allocator.h>
#include <memory/region_source.h>

#include <map>
#include <memory>
#include <vector>

namespace polder::memory {

class InPlaceHeap {
public:
    // `host` outlives the heap.
    InPlaceHeap(std::vector<driver::HostRegions*> devices, Allocator& host)
        : devices_(std::move(devices)), host_(host) {}
    InPlaceHeap(const InPlaceHeap&) = delete;
    InPlaceHeap& operator=(const InPlaceHeap&) = delete;
    ~InPlaceHeap();  // every block has been freed

    // Aligned for every OpenCL type.
    [[nodiscard]] Result<std::byte*> allocate(ByteCount size);
    void free(std::byte* block) noexcept;

private:
    struct Region {
        Region(driver::Memory at, const RegionAllocator::Region& blocks) : memory(at), allocator(blocks) {}
        driver::Memory memory;
        RegionAllocator allocator;
    };
    struct Block {
        Region* region;
        RegionAllocator::Block place;
    };
    [[nodiscard]] Result<std::unique_ptr<Region>> make_region(ByteCount size);
    void give_back(const Region& region) noexcept;
    [[nodiscard]] std::byte* place_in(Region& region, ByteCount size) POLDER_REQUIRES(mutex_);

    const std::vector<driver::HostRegions*> devices_;
    Allocator& host_;
    HostRegionSource source_;
    Mutex mutex_;
    std::vector<std::unique_ptr<Region>> regions_ POLDER_GUARDED_BY(mutex_);
    std::map<std::byte*, Block> blocks_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder::memory
