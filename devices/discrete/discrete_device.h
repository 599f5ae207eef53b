// A simulated device with its own memory: an arena that only the threads of its queues access. Kernels run on the host's
// processors, on workers of this device; a thread that waits for the device sleeps. A copy moves the bytes and takes
// at least as long as on a link with the given bandwidth and latency (host/interconnect.h).
//
// Devices of this driver copy directly from each other's memories, unless one of the two has peer=0.
#pragma once

#include <base/mutex.h>

#include <discrete/arena.h>
#include <discrete/parameters.h>
#include <host/host_device.h>
#include <host/interconnect.h>
#include <host/worker_pool.h>
#include <map>
#include <memory>
#include <polder/driver.h>

namespace polder::discrete {

// The arenas that devices may copy from, by memory space. Shared by the devices of a driver.
class Peers {
public:
    void add(SpaceId space, std::weak_ptr<Arena> arena, devices::LinkSpeed speed);
    [[nodiscard]] std::shared_ptr<Arena> find(SpaceId space) const;
    // A copy is as fast as the slower one of the two devices' links.
    [[nodiscard]] std::optional<driver::PeerLink> link(SpaceId reader, SpaceId other) const;

private:
    struct Peer {
        std::weak_ptr<Arena> arena;
        devices::LinkSpeed speed;
    };
    mutable Mutex mutex_;
    std::map<SpaceId, Peer> peers_ POLDER_GUARDED_BY(mutex_);
};

// What a device shares with its sub-devices.
struct SharedMemory {
    std::shared_ptr<Arena> arena;
    std::shared_ptr<devices::InterconnectModel> link;
    std::shared_ptr<Peers> peers;  // null: no direct copies
    bool uses_host_memory = false;  // kernels use pinned host memory in place (driver::HostRegions)
    bool is_mapped = false;  // kernels use host memory in place, when the device owns it (driver::UnifiedMemory)
};

class DiscreteDevice final : public devices::HostDevice,
                             public driver::PeerCopy,
                             public driver::HostRegions,
                             public driver::KernelAddresses,
                             public driver::VirtualMemory,
                             public driver::UnifiedMemory {
public:
    DiscreteDevice(driver::DeviceInfo info, SharedMemory shared, std::vector<int> processors);
    // Starts the first worker. out_of_resources when no thread can be started.
    [[nodiscard]] Result<void> start();

    [[nodiscard]] Result<driver::Memory> reserve_memory(ByteCount size) override;
    void release_memory(driver::Memory memory) override;
    [[nodiscard]] ByteCount available_memory() const override;
    [[nodiscard]] Result<std::unique_ptr<driver::Queue>> create_queue(driver::QueueRole role) override;
    [[nodiscard]] Result<std::unique_ptr<driver::Device>>
    create_sub_device(std::span<const uint32_t> compute_units) override;
    [[nodiscard]] DeviceAddress kernel_address(DeviceAddress address) const override;
    [[nodiscard]] driver::PeerCopy* peer_copy() override { return shared_.peers ? this : nullptr; }
    [[nodiscard]] const driver::KernelAddresses* kernel_addresses() const override { return this; }

    [[nodiscard]] driver::HostRegions* host_regions() override { return shared_.uses_host_memory ? this : nullptr; }
    [[nodiscard]] driver::VirtualMemory* virtual_memory() override { return this; }
    [[nodiscard]] driver::UnifiedMemory* unified_memory() override { return shared_.is_mapped ? this : nullptr; }

    // All host memory has an address in this process, and kernels run in it, so there is nothing to pin.
    [[nodiscard]] Result<void> add(std::span<std::byte>) override { return {}; }
    void remove(std::span<std::byte>) override {}
    [[nodiscard]] bool are_for_kernels() const override { return true; }

    [[nodiscard]] Alignment page() const override { return shared_.arena->page(); }
    [[nodiscard]] Result<DeviceAddress> reserve_addresses(ByteCount size) override {
        return shared_.arena->reserve_addresses(size);
    }
    void release_addresses(driver::Memory range) override { shared_.arena->release_addresses(range); }
    [[nodiscard]] Result<void> commit(driver::Memory range) override { return shared_.arena->commit(range); }
    void decommit(driver::Memory range) override { shared_.arena->decommit(range); }

    [[nodiscard]] driver::Timepoint map(driver::Queue& queue, driver::Memory range,
                                        const driver::Submission& submission) override;
    [[nodiscard]] driver::Timepoint unmap(driver::Queue& queue, driver::Memory range,
                                          const driver::Submission& submission) override;

    [[nodiscard]] std::optional<driver::PeerLink> link(SpaceId space) const override;
    [[nodiscard]] driver::Timepoint copy(driver::Queue& queue, SpaceId from_space,
                                         const driver::CopyOperation& operation,
                                         const driver::Submission& submission) override;

private:
    const SharedMemory shared_;
    devices::WorkerPool pool_;
};

}  // namespace polder::discrete
