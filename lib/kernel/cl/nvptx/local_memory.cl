// Local memory that is zero when a kernel begins (cl_khr_initialize_memory) on GPUs: the work-items share the work.
#include "../common.h"

// The kernel's own local memory (targets/nvptx/kernel_entry.cpp), and the local memory that the launch adds for each work-group.
__local uint* _polder_own_local_memory(void) __attribute__((const));
uint _polder_own_local_bytes(void) __attribute__((const));
__local uint* _polder_launch_local_memory(void) __attribute__((const));
uint _polder_launch_local_bytes(void) __attribute__((const));

HELPER void clear(__local uint* words, uint bytes) {
    uint step = (uint)polder_linear_local_size();
    for (uint i = (uint)get_local_linear_id(); i < bytes / sizeof(uint); i += step)
        words[i] = 0;
    __local uchar* rest = (__local uchar*)(words + bytes / sizeof(uint));
    if (get_local_linear_id() == 0)
        for (uint i = 0; i < bytes % sizeof(uint); ++i)
            rest[i] = 0;
}

// A kernel calls this first if the context has CL_CONTEXT_MEMORY_INITIALIZE_KHR (module/zeroed_memory.cpp).
COLLECTIVE void polder_clear_local_memory(void) {
    clear(_polder_own_local_memory(), _polder_own_local_bytes());
    clear(_polder_launch_local_memory(), _polder_launch_local_bytes());
    barrier(CLK_LOCAL_MEM_FENCE);
}
