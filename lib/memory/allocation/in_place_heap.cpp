// A region is reserved, counted and registered without the lock; the lock is held to find a place in a region. When a step of making a region fails,
// the earlier steps are undone.
#include "allocation/adaptive_pins.h"
#include "allocation/host_bytes.h"

#include <base/scope_exit.h>
#include <memory/in_place_heap.h>

#include <algorithm>
#include <sys/mman.h>

namespace polder::memory {
namespace {

constexpr ByteCount region_bytes{uint64_t{4} << 20};
constexpr Alignment heap_block_alignment{128};

}  // namespace

InPlaceHeap::~InPlaceHeap() {
    for (const std::unique_ptr<Region>& region : regions_)
        give_back(*region);
}

Result<std::unique_ptr<InPlaceHeap::Region>> InPlaceHeap::make_region(ByteCount size) {
    POLDER_ASSIGN(memory, source_.reserve(size));
    const ByteCount counted{memory.size};
    bool is_charged = false;
    size_t added = 0;
    bool is_made = false;
    const ScopeExit undo{[&]() noexcept {
        if (is_made)
            return;
        while (added != 0)
            devices_[--added]->remove(bytes_of(memory));
        source_.release(memory);
        if (is_charged)
            host_.discharge(counted);
    }};
    is_charged = host_.charge(counted);
    if (!is_charged)
        return fail(Status::mem_object_allocation_failure, "out of host memory: asked for " +
                                                               std::to_string(memory.size) + " bytes, free " +
                                                               std::to_string(host_.free_bytes().value));
    // After a fork(), copy-on-write could give this process new pages while the device still writes to the old ones.
    if (!AdaptivePins::are_forks_safe())
        madvise(memory.address.host(), memory.size, MADV_DONTFORK);
    for (; added < devices_.size(); ++added)
        if (Result<void> pinned = devices_[added]->add(bytes_of(memory)); !pinned)
            return fail(Status::mem_object_allocation_failure, std::string(pinned.error().detail()));
    const RegionAllocator::Region blocks{memory.address, ByteCount{memory.size}, heap_block_alignment};
    auto region = std::make_unique<Region>(memory, blocks);
    is_made = true;
    return region;
}

void InPlaceHeap::give_back(const Region& region) noexcept {
    for (driver::HostRegions* const device : devices_)
        device->remove(bytes_of(region.memory));
    source_.release(region.memory);
    host_.discharge(ByteCount{region.memory.size});
}

// Null when there is no room.
std::byte* InPlaceHeap::place_in(Region& region, ByteCount size) {
    const auto block = region.allocator.allocate(size, heap_block_alignment);
    if (!block)
        return nullptr;
    std::byte* const begin = region.memory.address.plus(block->offset).host();
    try {
        blocks_[begin] = {&region, *block};
    } catch (...) {
        region.allocator.free(*block);
        throw;
    }
    return begin;
}

Result<std::byte*> InPlaceHeap::allocate(ByteCount size) {
    if (size < region_bytes) {
        const Lock lock(mutex_);
        for (const std::unique_ptr<Region>& region : regions_)
            if (region->memory.size == region_bytes.value)
                if (std::byte* const begin = place_in(*region, size))
                    return begin;
    }
    // Without the lock, because registering takes long.
    POLDER_ASSIGN(made, make_region(std::max(size, region_bytes)));
    const Lock lock(mutex_);
    Region& region = *made;
    ScopeExit undo{[&]() noexcept {
        if (made)
            give_back(*made);
    }};
    regions_.reserve(regions_.size() + 1);
    std::byte* const begin = place_in(region, size);
    regions_.push_back(std::move(made));
    return begin;
}

void InPlaceHeap::free(std::byte* block) noexcept {
    std::unique_ptr<Region> unused;
    {
        const Lock lock(mutex_);
        const auto known = blocks_.find(block);
        Region* const region = known->second.region;
        region->allocator.free(known->second.place);
        blocks_.erase(known);
        const auto is_kept = [&](const std::unique_ptr<Region>& other) {
            return other.get() != region && other->memory.size == region_bytes.value && other->allocator.is_unused();
        };
        if (!region->allocator.is_unused() ||
            (region->memory.size == region_bytes.value && std::ranges::none_of(regions_, is_kept)))
            return;
        const auto place = std::ranges::find(regions_, region, &std::unique_ptr<Region>::get);
        unused = std::move(*place);
        regions_.erase(place);
    }
    give_back(*unused);
}

}  // namespace polder::memory
