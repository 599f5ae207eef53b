#include "space_impl.h"

#include <memory/region_source.h>

namespace polder::memory {

std::unique_ptr<Space> Space::host(driver::Device* host_device, const AllocationPolicy& policy) {
    return std::make_unique<SpaceImpl>(host_space, host_device, make_host_allocator(policy, host_device));
}

std::unique_ptr<Space> Space::of(driver::Device& device, const AllocationPolicy& policy) {
    return std::make_unique<SpaceImpl>(device.info().space, &device, make_device_allocator(policy, device));
}

ByteCount SpaceImpl::total_bytes() const {
    return id_.is_host() ? HostRegionSource::total() : ByteCount{device_->info().memory_bytes};
}

} // namespace polder::memory
