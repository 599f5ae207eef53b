// The fences of OpenCL 1.x, for all targets, by atomic_work_item_fence. Programs use them with volatile or 1.x atomic accesses
// of global memory to publish data to other work-groups, so they have the scope of the device.
#pragma once

#include "common.h"

BUILTIN void mem_fence(cl_mem_fence_flags flags) {
    atomic_work_item_fence(flags, memory_order_acq_rel, memory_scope_device);
}
BUILTIN void read_mem_fence(cl_mem_fence_flags flags) {
    atomic_work_item_fence(flags, memory_order_acquire, memory_scope_device);
}
BUILTIN void write_mem_fence(cl_mem_fence_flags flags) {
    atomic_work_item_fence(flags, memory_order_release, memory_scope_device);
}
