// How many work-items a work-group may have for its private memory.
//
// Code for processors keeps the private variables that live across barriers in memory, those of all work-items of a group at once, and
// each worker thread has such memory for the group that it executes. A kernel with large private arrays and barriers would need
// gigabytes for a large group. Limits follow from the kernel's source (KernelInfo::private_bytes_over_barriers), so that they are the same for
// all code of a kernel, and known before there is any. Pure; any thread. Decision 162.
#pragma once

#include <compiler/compiler.h>

#include <cstdint>
#include <polder/driver.h>

namespace polder::runtime {

// Bytes that the private variables of one work-group may take on a device that executes on the host: the device's threads together use
// at most a quarter of its memory, and each may use as much as a thread's stack has.
[[nodiscard]] uint64_t group_private_bytes_max(const driver::DeviceInfo& device);

// The most work-items of a group, at least 1 and at most CL_DEVICE_MAX_WORK_GROUP_SIZE.
[[nodiscard]] uint64_t group_items_max(const compiler::KernelInfo& kernel, const driver::DeviceInfo& device);

// The most that a group should have when the application leaves the choice. Groups with more memory are outside of every cache, and
// where work-items have so much memory, the cost of a group does not matter. `preferred_multiple`: of the kernel.
[[nodiscard]] uint64_t group_items_target(const compiler::KernelInfo& kernel, const driver::DeviceInfo& device,
                                          uint64_t preferred_multiple);

}  // namespace polder::runtime
