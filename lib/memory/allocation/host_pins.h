// HostPins: regions of host memory that devices read and write directly (driver::HostRegions), so that their copies need no staging.
//
// Owned by the space of host memory when `pinned:True` is set. Each region is registered once with each device: when the region
// is reserved, or when the device is first used. A device that refuses a region copies through its staging memory as before; this is
// reported once for each device. Devices outlive this object's regions. Any thread may call any function; the driver is called
// under the lock, so that a region is not removed while it is being added.
#pragma once

#include <base/mutex.h>
#include <memory/region_source.h>

#include <vector>

namespace polder::memory {

class HostPins {
public:
    // Registers all regions with `device`, now and later. Once for each device; later calls do nothing.
    void add_device(driver::HostRegions& device);
    void add_region(driver::Memory region);
    // Called before the region is unmapped, when no operation uses it.
    void remove_region(driver::Memory region) noexcept;

private:
    struct Device {
        driver::HostRegions* regions;
        bool has_refused = false;
    };
    struct Region {
        driver::Memory memory;
        std::vector<driver::HostRegions*> devices;  // those with which the region is registered
    };
    void pin(Region& region, Device& device) POLDER_REQUIRES(mutex_);

    Mutex mutex_;
    std::vector<Device> devices_ POLDER_GUARDED_BY(mutex_);
    std::vector<Region> regions_ POLDER_GUARDED_BY(mutex_);
};

// Host memory whose regions are pinned. All pages of a region have memory from the beginning, so a region is only as large as needed. It is
// released only as a whole, because the system must not replace a page that is registered with a device.
class PinnedRegionSource final : public RegionSource {
public:
    // `pins` outlives the source.
    explicit PinnedRegionSource(HostPins& pins) : pins_(pins) {}

    [[nodiscard]] Result<driver::Memory> reserve(ByteCount size) override;
    void release(driver::Memory memory) override;
    [[nodiscard]] ByteCount preferred_size(ByteCount needed, ByteCount reserved) const override;
    [[nodiscard]] ByteCount available() const override { return host_.available(); }
    [[nodiscard]] ByteCount resident(driver::Memory range) const override { return host_.resident(range); }

private:
    HostPins& pins_;
    HostRegionSource host_;
};

}  // namespace polder::memory
