#include "space_impl.h"

namespace polder::memory {

std::unique_ptr<Space> Space::host(driver::Device* host_device) {
    return std::make_unique<SpaceImpl>(host_space, host_device, BlockPool::of_host());
}

std::unique_ptr<Space> Space::of(driver::Device& device) {
    return std::make_unique<SpaceImpl>(device.info().space, &device, BlockPool::of(device));
}

ByteCount SpaceImpl::total_bytes() const {
    return id_.is_host() ? HostRegionSource::total() : ByteCount{device_->info().memory_bytes};
}

} // namespace polder::memory
