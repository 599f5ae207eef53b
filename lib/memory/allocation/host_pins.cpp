// Regions and devices are few, so they are lists. A region is registered outside of the allocator's lock: pinning takes about
// 0.1 ms for each MiB.
#include "host_pins.h"

#include "host_bytes.h"

#include <base/log.h>

#include <algorithm>
#include <string>

namespace polder::memory {
namespace {

constexpr ByteCount region_bytes_min{uint64_t{16} << 20};

}  // namespace

void HostPins::pin(Region& region, Device& device) {
    region.devices.reserve(region.devices.size() + 1);
    if (const Result<void> added = device.regions->add(bytes_of(region.memory)); added) {
        region.devices.push_back(device.regions);
        return;
    } else if (!device.has_refused) {
        device.has_refused = true;
        log::line(log::Category::warning, "pinned:True: a device refuses to pin %llu bytes of host memory: %s",
                  static_cast<unsigned long long>(region.memory.size), std::string(added.error().detail()).c_str());
    }
}

void HostPins::add_device(driver::HostRegions& device) {
    const Lock lock(mutex_);
    if (std::ranges::find(devices_, &device, &Device::regions) != devices_.end())
        return;
    devices_.push_back({&device});
    for (Region& region : regions_)
        pin(region, devices_.back());
}

void HostPins::add_region(driver::Memory region) {
    const Lock lock(mutex_);
    Region& added = regions_.emplace_back(Region{region, {}});
    for (Device& device : devices_)
        pin(added, device);
}

void HostPins::remove_region(driver::Memory region) noexcept {
    const Lock lock(mutex_);
    const auto found =
        std::ranges::find(regions_, region.address, [](const Region& known) { return known.memory.address; });
    if (found == regions_.end())
        return;
    for (driver::HostRegions* const device : found->devices)
        device->remove(bytes_of(region));
    regions_.erase(found);
}

Result<driver::Memory> PinnedRegionSource::reserve(ByteCount size) {
    Result<driver::Memory> memory = host_.reserve(size);
    if (!memory)
        return memory;
    try {
        pins_.add_region(*memory);
    } catch (const std::bad_alloc&) {
        release(*memory);
        throw;
    }
    return memory;
}

void PinnedRegionSource::release(driver::Memory memory) {
    pins_.remove_region(memory);
    host_.release(memory);
}

ByteCount PinnedRegionSource::preferred_size(ByteCount needed, ByteCount) const {
    return std::max(needed, region_bytes_min);
}

}  // namespace polder::memory
