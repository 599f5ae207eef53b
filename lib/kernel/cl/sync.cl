// Barriers and fences (OpenCL C 6.15.8, 6.15.12).
//
// One thread runs all work-items of a work-group, so a fence of the work-group's scope costs nothing. Wider
// scopes are fences of the processor. On x86 a fence below sequential consistency is no instruction, but the
// compiler does not move accesses across it.
#include "common.h"

COLLECTIVE void work_group_barrier(cl_mem_fence_flags flags) { barrier(flags); }
COLLECTIVE void work_group_barrier(cl_mem_fence_flags flags, memory_scope scope) {
    if (scope > memory_scope_work_group)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    barrier(flags);
}

BUILTIN void atomic_work_item_fence(cl_mem_fence_flags flags, memory_order order, memory_scope scope) {
    if (!(flags & (CLK_GLOBAL_MEM_FENCE | CLK_IMAGE_MEM_FENCE)) || scope == memory_scope_work_item ||
        scope == memory_scope_work_group || scope == memory_scope_sub_group)
        return;
    switch (order) {
    case memory_order_relaxed: return;
    case memory_order_acquire: __atomic_thread_fence(__ATOMIC_ACQUIRE); return;
    case memory_order_release: __atomic_thread_fence(__ATOMIC_RELEASE); return;
    case memory_order_acq_rel: __atomic_thread_fence(__ATOMIC_ACQ_REL); return;
    default: __atomic_thread_fence(__ATOMIC_SEQ_CST); return;
    }
}

#include "fences_1x.h"
