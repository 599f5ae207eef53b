// The limit of a work-group's size that follows from the private memory of its work-items.
//
// Host code stores private variables that live across barriers in memory, for all work-items of a group at once, and
// each worker thread has such memory for the group that it executes. A kernel with large private arrays and barriers would need
// gigabytes for a large group. The limits depend only on the kernel's source (KernelInfo::private_bytes_over_barriers), so that they are the
// same for all code of a kernel and known before code is made. Pure; any thread. Decision 162.
#pragma once

#include <compiler/compiler.h>

#include <cstdint>
#include <polder/driver.h>

namespace polder::runtime {

// The most bytes for the private variables of one work-group on a device that executes on the host. The device's threads together use
// at most a quarter of its memory, but each thread may always use as much as a thread's stack has.
[[nodiscard]] uint64_t group_private_bytes_max(const driver::DeviceInfo& device);

// The most work-items that a group may have: at least 1 and at most CL_DEVICE_MAX_WORK_GROUP_SIZE.
[[nodiscard]] uint64_t group_items_max(const compiler::KernelInfo& kernel, const driver::DeviceInfo& device);

// The most work-items that a group should have when the library chooses its size. The private memory of larger groups would not fit into
// a cache, and with so much memory the cost of one more group does not matter. `preferred_multiple`: that of the kernel.
[[nodiscard]] uint64_t group_items_target(const compiler::KernelInfo& kernel, const driver::DeviceInfo& device,
                                          uint64_t preferred_multiple);

}  // namespace polder::runtime
