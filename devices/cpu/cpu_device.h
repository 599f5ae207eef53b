// The CPU device, and its sub-devices: each has an engine with workers of its own.
#pragma once

#include <base/mutex.h>

#include <common/engine.h>
#include <optional>
#include <polder/driver.h>
#include <span>
#include <vector>

namespace polder::cpu {

class CpuDevice final : public driver::Device {
public:
    // `processors`: the OS's numbers, one for each compute unit. `nodes`: their NUMA domains; empty when there is
    // only one.
    CpuDevice(driver::DeviceInfo info, std::vector<int> processors, std::vector<uint32_t> nodes);

    [[nodiscard]] const driver::DeviceInfo& info() const override { return info_; }
    [[nodiscard]] std::span<const driver::AffinityDomain> affinity_domains() override;

    [[nodiscard]] Result<driver::Memory> reserve_memory(ByteCount size) override;
    void release_memory(driver::Memory memory) override;
    [[nodiscard]] ByteCount available_memory() const override;

    [[nodiscard]] Result<std::unique_ptr<driver::Queue>> create_queue(driver::QueueRole role) override;
    [[nodiscard]] Result<std::unique_ptr<driver::LoadedKernel>> load(const driver::KernelImage& image) override;
    [[nodiscard]] Result<std::unique_ptr<driver::Device>>
    create_sub_device(std::span<const uint32_t> compute_units) override;
    [[nodiscard]] uint64_t now_ns() const override;

private:
    driver::DeviceInfo info_;
    const std::vector<int> processors_;
    const std::vector<uint32_t> nodes_;
    devices::Engine engine_;

    Mutex mutex_;
    std::optional<std::vector<driver::AffinityDomain>> domains_ POLDER_GUARDED_BY(mutex_);
};

} // namespace polder::cpu
