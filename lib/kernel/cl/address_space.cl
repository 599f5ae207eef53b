// Which address space a generic pointer is in (OpenCL C 6.15.13).
//
// All address spaces are one on the host, so the address decides: local memory is the block that the
// work-group was given; private memory is the block for values that live across barriers, or the frame of the
// work-group function. All other memory is global. It may be just above or below the frame: the caller's variables, or
// memory next to a thread's small stack.
#include "local_memory.h"

// A function without calls may use this many bytes below the stack pointer (x86-64's red zone; other machines have none).
#define RED_ZONE_BYTES 128

// LLVM's intrinsic, for which Clang has no built-in function: the stack pointer. Frames do not grow while they run.
const __private uchar* stack_pointer(void) __asm__("llvm.stacksave.p0");

static bool is_within(const __generic void* p, const __private void* base, ulong size) {
    return (ulong)p - (ulong)base < size;
}

static bool is_local(const __generic void* p) {
    return is_within(p, _polder_local_memory(), polder_local_bytes());
}

static bool is_private(const __generic void* p) {
    // These functions are inlined into the work-group function, as all functions that use an intrinsic are: its frame ends here.
    const __private uchar* end = (const __private uchar*)(ulong)__builtin_frame_address(0);
    const __private uchar* begin = stack_pointer() - RED_ZONE_BYTES;
    return is_within(p, begin, end - begin) ||
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
