#include "allocation/system_memory.h"
#include "space_impl.h"

#include <memory/region_source.h>

#include <algorithm>

namespace polder::memory {

std::unique_ptr<Space> Space::host(driver::Device* host_device, const AllocationPolicy& policy) {
    using Pinned = AllocationPolicy::Pinned;
    HostMemoryPins pins;
    if (policy.pinned == Pinned::always)
        pins.always = std::make_unique<HostPins>();
    else if (policy.pinned == Pinned::by_use && AdaptivePins::are_forks_safe())
        pins.by_use = std::make_unique<AdaptivePins>(AdaptivePins::share_of(host_memory_limit(host_device)));
    auto pool = make_host_allocator(policy, host_device, {pins.always.get(), pins.by_use.get()});
    return std::make_unique<SpaceImpl>(host_space, host_device, std::move(pool), std::move(pins));
}

std::unique_ptr<Space> Space::of(driver::Device& device, const AllocationPolicy& policy) {
    return std::make_unique<SpaceImpl>(device.info().space, &device, make_device_allocator(policy, device));
}

ByteCount SpaceImpl::total_bytes() const {
    return id_.is_host() ? HostRegionSource::total() : ByteCount{device_->info().memory_bytes};
}

SpaceBudget SpaceImpl::budget() const {
    const Allocator::Statistics now = pool_->statistics();
    SpaceBudget budget;
    budget.total = total_bytes();
    budget.limit = std::min(budget.total, limit());
    budget.committed = ByteCount{now.live.value + now.deferred.value};
    budget.reserved = now.reserved;
    budget.resident = ByteCount{pool_->resident().value + sparse_.uncounted_bytes().value};
    budget.available = free_bytes();
    const uint64_t unused = id_.is_host() ? SystemMemory::now().available.value : device_->available_memory().value;
    budget.used_by_others =
        ByteCount{budget.total.value - std::min(budget.total.value, budget.resident.value + unused)};
    return budget;
}

} // namespace polder::memory
