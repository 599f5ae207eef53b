#include <host/clock.h>
#include <host/host_device.h>
#include <host/host_kernel.h>

namespace polder::devices {

Result<std::unique_ptr<driver::LoadedKernel>> HostDevice::load(const driver::KernelCode& code) {
    return HostKernel::load(std::get<driver::HostCode>(code));
}

uint64_t HostDevice::now_ns() const { return devices::now_ns(); }

driver::DeviceInfo HostDevice::info_of(std::span<const uint32_t> compute_units) const {
    driver::DeviceInfo info = info_;
    info.compute_units = static_cast<uint32_t>(compute_units.size());
    info.max_sub_devices = info.compute_units > 1 ? info.compute_units : 0;
    return info;
}

} // namespace polder::devices
