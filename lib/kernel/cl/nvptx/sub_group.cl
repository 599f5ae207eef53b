// Sub-group functions on GPUs: a sub-group is a warp.
#define POLDER_WARPS
#include "../sub_group.cl"

// The instruction orders the accesses of the work-items that execute it together.
COLLECTIVE void sub_group_barrier(cl_mem_fence_flags flags) { _polder_warp_sync(warp_members()); }
COLLECTIVE void sub_group_barrier(cl_mem_fence_flags flags, memory_scope scope) {
    if (scope == memory_scope_device || scope == memory_scope_all_svm_devices)
        __scoped_atomic_thread_fence(__ATOMIC_SEQ_CST, __MEMORY_SCOPE_DEVICE);
    _polder_warp_sync(warp_members());
}
