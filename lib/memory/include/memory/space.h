// Space: a memory space of the process, with its number, its allocator, and its hidden queues.
//
// Created by the platform when it opens devices, never destroyed before the process ends. Space 0 is
// host memory and has no device; each device with memory of its own has one Space, shared by its
// sub-devices. `application_space` is the space of CL_MEM_USE_HOST_PTR memory that devices
// cannot use in place: it has replicas, but no allocator and no device.
// Any thread may call any function.
#pragma once

#include <memory/allocation_policy.h>
#include <memory/allocator.h>

#include <polder/driver.h>
#include <polder/types.h>

namespace polder::memory {

inline constexpr SpaceId application_space{SpaceId::max_spaces - 1};

// What was done in one memory for lack of room, since it was opened.
struct SpaceActivity {
    uint64_t compactions = 0;
    ByteCount compacted;  // moved within the memory
    ByteCount evicted;  // memory that storages lost
    ByteCount written_back;  // of it, what was copied elsewhere first
    ByteCount returned;  // evicted, and needed again later
    // Owners of memory that the host and this device share have changed: to the host, to the device.
    uint64_t maps = 0;
    uint64_t unmaps = 0;
    uint64_t examined = 0;  // storages and replicas that searches for victims have looked at
};

// One memory at this moment.
struct SpaceBudget {
    ByteCount total;
    ByteCount limit;  // what storages may have together
    ByteCount committed;  // what storages have, with memory that commands in flight still use
    ByteCount reserved;  // what the allocator has taken from the device or the system
    ByteCount resident;  // the part of it that is backed by physical memory
    ByteCount used_by_others;  // other processes and libraries, and the application itself
    ByteCount available;  // what further storages could get
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
    // Gives memory and addresses that are kept for later use back to the system or the device.
    virtual void trim() = 0;
    // Total bytes, and the bytes that new buffers could still get.
    [[nodiscard]] virtual ByteCount total_bytes() const = 0;
    [[nodiscard]] virtual ByteCount free_bytes() const = 0;
    [[nodiscard]] virtual SpaceActivity activity() const = 0;
    // Asks the system, or the device's driver.
    [[nodiscard]] virtual SpaceBudget budget() const = 0;
};

} // namespace polder::memory
