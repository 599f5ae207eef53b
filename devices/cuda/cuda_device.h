// CudaDevice: one NVIDIA GPU. See cuda_queue.h for how it executes and cuda_memory.h for its memory.
//
// GPUs of this driver copy directly from each other's memory when the hardware supports it. Any thread.
#pragma once

#include <base/mutex.h>

#include <cuda/cuda_kernel.h>
#include <cuda/cuda_memory.h>
#include <cuda/pinned_memory.h>
#include <cuda/registered_regions.h>
#include <cuda/stream_watch.h>
#include <memory>
#include <polder/driver.h>
#include <vector>

namespace polder::cuda {

class CudaDevice;

// The open GPUs of a driver, in the order of their opening.
class Peers {
public:
    // Gives `device` and those before it access to each other's memory, where the hardware and CUDA allow it.
    void add(CudaDevice& device);
    void remove(CudaDevice& device) noexcept;
    [[nodiscard]] std::optional<driver::PeerLink> link(const CudaDevice& device, SpaceId space) const;

private:
    struct Connection {
        const CudaDevice* reader;
        const CudaDevice* other;
        driver::PeerLink link;
    };
    void connect(const CudaDevice& reader, CudaDevice& other) POLDER_REQUIRES(mutex_);

    mutable Mutex mutex_;
    std::vector<CudaDevice*> devices_ POLDER_GUARDED_BY(mutex_);
    std::vector<Connection> connections_ POLDER_GUARDED_BY(mutex_);
};

// The objects that all GPUs of a driver share.
struct SharedByGpus {
    Peers peers;
    RegisteredRegions regions;
};

class CudaDevice final : public driver::Device,
                         public driver::PeerCopy,
                         public driver::HostRegions,
                         public driver::VirtualMemory {
public:
    [[nodiscard]] static Result<std::unique_ptr<driver::Device>> open(const CudaApi& api, int ordinal, SpaceId space,
                                                                      std::shared_ptr<SharedByGpus> shared,
                                                                      const Parameters& parameters);
    ~CudaDevice() override;

    [[nodiscard]] const driver::DeviceInfo& info() const override { return info_; }
    [[nodiscard]] Result<driver::Memory> reserve_memory(ByteCount size) override { return memory_->reserve(size); }
    void release_memory(driver::Memory memory) override { memory_->release(memory); }
    [[nodiscard]] ByteCount available_memory() const override { return memory_->available(); }
    [[nodiscard]] Result<std::unique_ptr<driver::Queue>> create_queue(driver::QueueRole role) override;
    [[nodiscard]] Result<std::unique_ptr<driver::LoadedKernel>> load(const driver::KernelCode& code) override;
    [[nodiscard]] Result<std::unique_ptr<driver::Device>>
    create_sub_device(std::span<const uint32_t> compute_units) override;
    [[nodiscard]] uint64_t now_ns() const override;

    [[nodiscard]] driver::PeerCopy* peer_copy() override { return this; }
    [[nodiscard]] std::optional<driver::PeerLink> link(SpaceId space) const override {
        return shared_->peers.link(*this, space);
    }
    [[nodiscard]] driver::Timepoint copy(driver::Queue& queue, SpaceId from_space,
                                         const driver::CopyOperation& operation,
                                         const driver::Submission& submission) override;
    [[nodiscard]] driver::Timepoint copy_all(driver::Queue& queue, SpaceId from_space,
                                             std::span<const driver::CopyOperation> operations,
                                             const driver::Submission& submission) override;

    [[nodiscard]] driver::HostRegions* host_regions() override { return this; }
    [[nodiscard]] Result<void> add(std::span<std::byte> region) override {
        return shared_->regions.add(*context_, region);
    }
    void remove(std::span<std::byte> region) override { shared_->regions.remove(*context_, region); }
    [[nodiscard]] bool are_for_kernels() const override { return context_->facts.uses_host_pointers; }

    [[nodiscard]] driver::VirtualMemory* virtual_memory() override { return this; }
    [[nodiscard]] Alignment page() const override { return memory_->page(); }
    [[nodiscard]] Result<DeviceAddress> reserve_addresses(ByteCount size) override {
        return memory_->reserve_addresses(size);
    }
    void release_addresses(driver::Memory range) override { memory_->release_addresses(range); }
    [[nodiscard]] Result<void> commit(driver::Memory range) override { return memory_->commit(range); }
    void decommit(driver::Memory range) override { memory_->decommit(range); }
    // cuMemSetAccess: 1 ms a call, and 10 ms for each GiB.
    [[nodiscard]] bool is_slow() const override { return true; }

private:
    friend class Peers;
    CudaDevice(std::unique_ptr<CudaContext> context, std::unique_ptr<CudaMemory> memory, SpaceId space,
               std::shared_ptr<SharedByGpus> shared, const Parameters& parameters);

    const std::unique_ptr<CudaContext> context_;
    const std::unique_ptr<CudaMemory> memory_;
    const std::shared_ptr<SharedByGpus> shared_;
    StagingPool staging_;
    StreamWatch watch_;
    ModuleCache modules_;
    const driver::DeviceInfo info_;
};

} // namespace polder::cuda
