// Local memory that is zero when a kernel begins (cl_khr_initialize_memory).
#include "local_memory.h"

// A kernel calls this first if the context has CL_CONTEXT_MEMORY_INITIALIZE_KHR (module/zeroed_memory.cpp).
COLLECTIVE void polder_clear_local_memory(void) {
    if (get_local_linear_id() == 0)
        __builtin_memset((__private uchar*)_polder_local_memory(), 0, polder_local_bytes());
    barrier(CLK_LOCAL_MEM_FENCE);
}
