// Barriers and fences (OpenCL C 6.15.8, 6.15.12). The compiler widens or narrows the scopes to those that PTX has
// (lib/compiler/targets/nvptx/fences.h).
#include "../common.h"

#define FENCE(SCOPE)                                                                                   \
    switch (order) {                                                                                   \
    case memory_order_relaxed: return;                                                                 \
    case memory_order_seq_cst: __scoped_atomic_thread_fence(__ATOMIC_SEQ_CST, SCOPE); return;          \
    default: __scoped_atomic_thread_fence(__ATOMIC_ACQ_REL, SCOPE); return;                            \
    }

BUILTIN void atomic_work_item_fence(cl_mem_fence_flags flags, memory_order order, memory_scope scope) {
    if (scope == memory_scope_work_item)
        return;
    bool is_narrow = scope == memory_scope_work_group || scope == memory_scope_sub_group;
    // Only the work-group itself accesses its local memory.
    if (is_narrow || !(flags & (CLK_GLOBAL_MEM_FENCE | CLK_IMAGE_MEM_FENCE))) {
        FENCE(__MEMORY_SCOPE_WRKGRP)
    }
    FENCE(__MEMORY_SCOPE_DEVICE)
}

#include "../fences_1x.h"
