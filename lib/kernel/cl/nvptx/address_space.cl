// Which address space a generic pointer is in (OpenCL C 6.15.13): the processor has instructions that report it.
#include "../common.h"

bool _polder_is_global(const __generic void* p) __attribute__((const));
bool _polder_is_local(const __generic void* p) __attribute__((const));
bool _polder_is_private(const __generic void* p) __attribute__((const));

// What Clang calls for to_global, to_local and to_private.
__global void* __to_global(__generic void* p) { return _polder_is_global(p) ? (__global void*)p : 0; }
__local void* __to_local(__generic void* p) { return _polder_is_local(p) ? (__local void*)p : 0; }
__private void* __to_private(__generic void* p) { return _polder_is_private(p) ? (__private void*)p : 0; }

BUILTIN cl_mem_fence_flags get_fence(const __generic void* p) {
    return _polder_is_local(p) ? CLK_LOCAL_MEM_FENCE : CLK_GLOBAL_MEM_FENCE;
}
BUILTIN cl_mem_fence_flags get_fence(__generic void* p) {
    return _polder_is_local(p) ? CLK_LOCAL_MEM_FENCE : CLK_GLOBAL_MEM_FENCE;
}
