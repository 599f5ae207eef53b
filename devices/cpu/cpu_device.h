// The CPU device and its sub-devices. Each of them has its own pool of worker threads. Any thread.
#pragma once

#include <base/mutex.h>

#include <host/host_device.h>
#include <host/worker_pool.h>
#include <optional>
#include <span>
#include <vector>

namespace polder::cpu {

class CpuDevice final : public devices::HostDevice {
public:
    // `processors`: the OS's numbers. `nodes`: the NUMA domain of each processor; empty when there is only one domain.
    CpuDevice(driver::DeviceInfo info, std::vector<int> processors, std::vector<uint32_t> nodes);

    [[nodiscard]] std::span<const driver::AffinityDomain> affinity_domains() override;

    [[nodiscard]] Result<driver::Memory> reserve_memory(ByteCount size) override;
    void release_memory(driver::Memory memory) override;
    [[nodiscard]] ByteCount available_memory() const override;

    [[nodiscard]] Result<std::unique_ptr<driver::Queue>> create_queue(driver::QueueRole role) override;
    [[nodiscard]] Result<std::unique_ptr<driver::Device>>
    create_sub_device(std::span<const uint32_t> compute_units) override;

private:
    const std::vector<uint32_t> nodes_;
    devices::WorkerPool pool_;

    Mutex mutex_;
    std::optional<std::vector<driver::AffinityDomain>> domains_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder::cpu
