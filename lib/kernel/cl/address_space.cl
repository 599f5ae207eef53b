// Which address space a generic pointer is in (OpenCL C 6.15.13).
//
// All address spaces are one on the host, so it is told from the address: local memory is the block that the
// work-group was given; private memory is the block for values that live across barriers, or the frame of the
// work-group function; all else is global, and may lie right above the thread's stack.
#include "common.h"

// The field of polder::LaunchContext (kernel_abi.h): bytes of the work-group's local memory.
#define LOCAL_BYTES_OFFSET (12 * sizeof(ulong) + sizeof(uint))
// A frame is far smaller, and the stacks that kernels run on are larger.
#define FRAME_BYTES_MAX (4 << 20)

static bool is_within(const __generic void* p, const __private void* base, ulong size) {
    return (ulong)p - (ulong)base < size;
}

static bool is_local(const __generic void* p) {
    ulong bytes = *(const __private uint*)(_polder_launch_context() + LOCAL_BYTES_OFFSET);
    return is_within(p, _polder_local_memory(), bytes);
}

static bool is_private(const __generic void* p) {
    // These functions are inlined into the work-group function, as all that reaches a leaf is: its frame ends here.
    const __private uchar* end = (const __private uchar*)(ulong)__builtin_frame_address(0);
    return is_within(p, end - FRAME_BYTES_MAX, FRAME_BYTES_MAX) ||
           is_within(p, _polder_scratch_memory(), _polder_scratch_bytes());
}

// What Clang calls for to_global, to_local and to_private.
__global void* __to_global(__generic void* p) {
    return is_local(p) || is_private(p) ? 0 : (__global void*)p;
}
__local void* __to_local(__generic void* p) { return is_local(p) ? (__local void*)p : 0; }
__private void* __to_private(__generic void* p) {
    return !is_local(p) && is_private(p) ? (__private void*)p : 0;
}

BUILTIN cl_mem_fence_flags get_fence(const __generic void* p) {
    return is_local(p) ? CLK_LOCAL_MEM_FENCE : CLK_GLOBAL_MEM_FENCE;
}
BUILTIN cl_mem_fence_flags get_fence(__generic void* p) {
    return is_local(p) ? CLK_LOCAL_MEM_FENCE : CLK_GLOBAL_MEM_FENCE;
}
