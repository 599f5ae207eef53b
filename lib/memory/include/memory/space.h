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
    // Total bytes, and the bytes that new buffers could still get.
    [[nodiscard]] virtual ByteCount total_bytes() const = 0;
    [[nodiscard]] virtual ByteCount free_bytes() const = 0;
};

} // namespace polder::memory
