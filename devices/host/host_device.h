// HostDevice: the base class of devices whose kernels run on the host's processors. The derived classes have their own memory,
// worker pool and queues.
//
// Any thread; nothing here changes after construction.
#pragma once

#include <polder/driver.h>
#include <vector>

namespace polder::devices {

class HostDevice : public driver::Device {
public:
    [[nodiscard]] const driver::DeviceInfo& info() const final { return info_; }
    [[nodiscard]] Result<std::unique_ptr<driver::LoadedKernel>> load(const driver::KernelCode& code) final;
    [[nodiscard]] uint64_t now_ns() const final;

protected:
    // `processors`: the OS's numbers, one for each compute unit.
    HostDevice(driver::DeviceInfo info, std::vector<int> processors)
        : info_(std::move(info)), processors_(std::move(processors)) {}

    [[nodiscard]] const std::vector<int>& processors() const { return processors_; }
    // The DeviceInfo of a sub-device with these compute units.
    [[nodiscard]] driver::DeviceInfo info_of(std::span<const uint32_t> compute_units) const;
    template <class T>
    [[nodiscard]] static std::vector<T> pick(const std::vector<T>& of_units, std::span<const uint32_t> compute_units) {
        std::vector<T> picked;
        picked.reserve(compute_units.size());
        for (const uint32_t unit : compute_units)
            picked.push_back(of_units[unit]);
        return picked;
    }

private:
    const driver::DeviceInfo info_;
    const std::vector<int> processors_;
};

}  // namespace polder::devices
