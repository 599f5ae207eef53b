// Space: a memory space of the process, with its number, its allocator, and its hidden queues.
//
// Created by the platform when it opens devices, and never destroyed before the process ends. Space 0 is
// host memory, which belongs to no single device; each device with memory of its own has one Space, shared by its
// sub-devices. `application_space` is the space of CL_MEM_USE_HOST_PTR memory that devices
// cannot use in place: it has replicas, but no allocator and no device.
// Any thread may call any function.
#pragma once

#include <memory/allocation_policy.h>
#include <memory/allocator.h>

#include <algorithm>
#include <polder/driver.h>
#include <polder/types.h>

namespace polder::memory {

inline constexpr SpaceId application_space{SpaceId::max_spaces - 1};

// What was done in one memory because it was full, since it was opened.
struct SpaceActivity {
    uint64_t compactions = 0;
    ByteCount compacted;  // bytes that were moved within the memory
    ByteCount evicted;  // the sizes of evicted replicas
    ByteCount written_back;  // bytes that were copied to another memory before an eviction
    ByteCount returned;  // memory that storages got again after an eviction
    // How often the owner of memory that host and device share has changed, to the host (maps) and to the device (unmaps).
    uint64_t maps = 0;
    uint64_t unmaps = 0;
    uint64_t examined = 0;  // storages and replicas that searches for victims have looked at
};

// The use of one memory at this moment.
struct SpaceBudget {
    ByteCount total;
    ByteCount limit;  // the most that all storages may have together
    ByteCount committed;  // the memory of storages, and freed memory that commands in flight still use
    ByteCount reserved;  // the memory that the allocator has reserved from the device or the system
    ByteCount resident;  // the part of the reserved memory that physical memory backs
    ByteCount used_by_others;  // the memory that other processes, other libraries and the application itself use
    ByteCount available;  // the memory that further storages could get
};

class Space {
public:
    // Host memory: transfers between two places of the host are executed by `host_device`, any device
    // that computes in host memory; may be null when there is none.
    static std::unique_ptr<Space> host(driver::Device* host_device, const AllocationPolicy& policy = {});
    // The memory of `device`.
    static std::unique_ptr<Space> of(driver::Device& device, const AllocationPolicy& policy = {});
    virtual ~Space() = default;

    [[nodiscard]] virtual SpaceId id() const = 0;
    [[nodiscard]] virtual driver::Device* device() const = 0;
    [[nodiscard]] virtual Allocator& pool() = 0;
    // Releases memory and addresses that are kept for later use to the system or the device.
    virtual void trim() = 0;
    // total_bytes: the size of the memory. free_bytes: the bytes that new buffers could still get.
    [[nodiscard]] virtual ByteCount total_bytes() const = 0;
    [[nodiscard]] virtual ByteCount free_bytes() const = 0;
    // The largest buffer that could be allocated now, given the pool's statistics. Regions without blocks in use are released when a request needs
    // their memory, so only what is free beside such blocks does not count.
    [[nodiscard]] ByteCount largest_free(const Allocator::Statistics& now) const {
        const uint64_t free = free_bytes().value;
        const bool is_empty = now.live_blocks == 0 && now.deferred_blocks == 0;
        const uint64_t scattered = is_empty ? 0 : std::min(free, now.inactive_split.value);
        return ByteCount{std::max(std::min(free, now.largest_free.value), free - scattered)};
    }
    [[nodiscard]] virtual SpaceActivity activity() const = 0;
    // Makes system calls, or calls the device's driver.
    [[nodiscard]] virtual SpaceBudget budget() const = 0;
};

}  // namespace polder::memory
