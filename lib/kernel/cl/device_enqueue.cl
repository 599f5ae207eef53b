// Queues on the device (OpenCL C 6.15.17): what Clang calls for enqueue_kernel and for the queries of a block, the functions of events, and
// ndrange_1D and so on. include/polder/device_enqueue_abi.h explains how blocks are executed.
//
// Clang and the reader of SPIR-V pass the address of the block's kernel; the compiler has replaced it by the kernel's name (module/block_kernels.h).
#include "common.h"

// Clang's queues and events are opaque types. In the library these are pointers to private memory.
typedef __private void* Opaque;
typedef const __private uchar* Context;
#define PLAIN __attribute__((always_inline))

// In kernel/device_enqueue.h.
int polder_device_enqueue(Context context, Opaque queue, uint flags, const __private void* range, uint event_count,
                          const __generic void* events, __generic void* event, const __generic void* block,
                          const __generic void* literal, uint literal_bytes, uint literal_alignment, uint local_count,
                          const __private ulong* local_bytes);
uint polder_device_query(Context context, uint what, const __generic void* block, const __private void* range);
Opaque polder_device_default_queue(Context context);
Opaque polder_device_create_event(Context context);
void polder_device_set_event_status(Context context, Opaque event, int status);
void polder_device_retain_event(Context context, Opaque event);
void polder_device_release_event(Context context, Opaque event);
int polder_device_is_event(Context context, Opaque event);
void polder_device_capture_time(Context context, Opaque event, __global void* value);

// A program from SPIR-V, which says what it passes.
PLAIN int __enqueue_kernel_spirv(Opaque queue, uint flags, const __private void* range, uint event_count,
                                 const __generic void* events, __generic void* event, const __generic void* block,
                                 const __generic void* literal, uint literal_bytes, uint literal_alignment,
                                 uint local_count, const __private ulong* local_bytes) {
    return polder_device_enqueue(_polder_launch_context(), queue, flags, range, event_count, events, event, block,
                                 literal, literal_bytes, literal_alignment, local_count, local_bytes);
}

PLAIN int __enqueue_kernel_events_varargs(Opaque queue, uint flags, const __private void* range, uint event_count,
                                          const __generic void* events, __generic void* event,
                                          const __generic void* block, const __generic void* literal,
                                          uint local_count, const __private ulong* local_bytes) {
    // The first members of a literal of Clang's: its size and its alignment.
    const __generic uint* head = (const __generic uint*)literal;
    return polder_device_enqueue(_polder_launch_context(), queue, flags, range, event_count, events, event, block,
                                 literal, head[0], head[1], local_count, local_bytes);
}
PLAIN int __enqueue_kernel_basic(Opaque queue, uint flags, const __private void* range, const __generic void* block,
                                 const __generic void* literal) {
    return __enqueue_kernel_events_varargs(queue, flags, range, 0, 0, 0, block, literal, 0, 0);
}
PLAIN int __enqueue_kernel_varargs(Opaque queue, uint flags, const __private void* range, const __generic void* block,
                                   const __generic void* literal, uint local_count,
                                   const __private ulong* local_bytes) {
    return __enqueue_kernel_events_varargs(queue, flags, range, 0, 0, 0, block, literal, local_count, local_bytes);
}
PLAIN int __enqueue_kernel_basic_events(Opaque queue, uint flags, const __private void* range, uint event_count,
                                        const __generic void* events, __generic void* event,
                                        const __generic void* block, const __generic void* literal) {
    return __enqueue_kernel_events_varargs(queue, flags, range, event_count, events, event, block, literal, 0, 0);
}

// The numbers are those of BlockQuery.
PLAIN uint __get_kernel_work_group_size_impl(const __generic void* block, const __generic void* literal) {
    return polder_device_query(_polder_launch_context(), 0, block, 0);
}
PLAIN uint __get_kernel_preferred_work_group_size_multiple_impl(const __generic void* block,
                                                                const __generic void* literal) {
    return polder_device_query(_polder_launch_context(), 1, block, 0);
}
PLAIN uint __get_kernel_max_sub_group_size_for_ndrange_impl(const __private void* range, const __generic void* block,
                                                            const __generic void* literal) {
    return polder_device_query(_polder_launch_context(), 2, block, range);
}
PLAIN uint __get_kernel_sub_group_count_for_ndrange_impl(const __private void* range, const __generic void* block,
                                                         const __generic void* literal) {
    return polder_device_query(_polder_launch_context(), 3, block, range);
}
// Of SPIR-V alone.
PLAIN uint __get_kernel_max_sub_group_count_impl(const __generic void* block, const __generic void* literal) {
    return polder_device_query(_polder_launch_context(), 5, block, 0);
}
PLAIN uint __get_kernel_local_size_for_sub_group_count_impl(uint count, const __generic void* block,
                                                            const __generic void* literal) {
    const uint size = polder_device_query(_polder_launch_context(), 4, block, 0);
    const uint group_size_max = polder_device_query(_polder_launch_context(), 0, block, 0);
    return size != 0 && count <= group_size_max / size ? count * size : 0;
}

Opaque polder_get_default_queue(void) __asm__("_Z17get_default_queuev");
PLAIN Opaque polder_get_default_queue(void) { return polder_device_default_queue(_polder_launch_context()); }

int polder_enqueue_marker(Opaque queue, uint event_count, const __generic void* events,
                          __generic void* event) __asm__("_Z14enqueue_marker9ocl_queuejPU3AS4K12ocl_clkeventPU3AS4S0_");
PLAIN int polder_enqueue_marker(Opaque queue, uint event_count, const __generic void* events, __generic void* event) {
    return polder_device_enqueue(_polder_launch_context(), queue, 0, 0, event_count, events, event, 0, 0, 0, 0, 0, 0);
}

Opaque polder_create_user_event(void) __asm__("_Z17create_user_eventv");
PLAIN Opaque polder_create_user_event(void) { return polder_device_create_event(_polder_launch_context()); }
void polder_set_user_event_status(Opaque event, int status) __asm__("_Z21set_user_event_status12ocl_clkeventi");
PLAIN void polder_set_user_event_status(Opaque event, int status) {
    polder_device_set_event_status(_polder_launch_context(), event, status);
}
void polder_retain_event(Opaque event) __asm__("_Z12retain_event12ocl_clkevent");
PLAIN void polder_retain_event(Opaque event) { polder_device_retain_event(_polder_launch_context(), event); }
void polder_release_event(Opaque event) __asm__("_Z13release_event12ocl_clkevent");
PLAIN void polder_release_event(Opaque event) { polder_device_release_event(_polder_launch_context(), event); }
bool polder_is_valid_event(Opaque event) __asm__("_Z14is_valid_event12ocl_clkevent");
PLAIN bool polder_is_valid_event(Opaque event) { return polder_device_is_event(_polder_launch_context(), event) != 0; }
void polder_capture_event(Opaque event, int what, __global void* value) __asm__(
    "_Z28capture_event_profiling_info12ocl_clkeventiPU3AS1v");
PLAIN void polder_capture_event(Opaque event, int what, __global void* value) {
    if (what == CLK_PROFILING_COMMAND_EXEC_TIME)
        polder_device_capture_time(_polder_launch_context(), event, value);
}

// CLK_NULL_EVENT
PLAIN __attribute__((const)) Opaque __polder_null_event(void) { return (Opaque)(size_t)~0ul; }

static inline ndrange_t polder_range(uint dims, const size_t* offset, const size_t* global_size,
                                     const size_t* local_size) {
    ndrange_t range;
    range.workDimension = dims;
    for (uint d = 0; d < 3; ++d) {
        range.globalWorkOffset[d] = offset && d < dims ? offset[d] : 0;
        range.globalWorkSize[d] = d < dims ? global_size[d] : 1;
        range.localWorkSize[d] = local_size && d < dims ? local_size[d] : 0;
    }
    return range;
}
BUILTIN ndrange_t ndrange_1D(size_t global_size) { return polder_range(1, 0, &global_size, 0); }
BUILTIN ndrange_t ndrange_1D(size_t global_size, size_t local_size) {
    return polder_range(1, 0, &global_size, &local_size);
}
BUILTIN ndrange_t ndrange_1D(size_t offset, size_t global_size, size_t local_size) {
    return polder_range(1, &offset, &global_size, &local_size);
}
#define DEFINE_RANGE(DIMS)                                                                             \
    BUILTIN ndrange_t ndrange_##DIMS##D(const size_t global_size[DIMS]) {                              \
        return polder_range(DIMS, 0, global_size, 0);                                                  \
    }                                                                                                  \
    BUILTIN ndrange_t ndrange_##DIMS##D(const size_t global_size[DIMS], const size_t local_size[DIMS]) { \
        return polder_range(DIMS, 0, global_size, local_size);                                         \
    }                                                                                                  \
    BUILTIN ndrange_t ndrange_##DIMS##D(const size_t offset[DIMS], const size_t global_size[DIMS],     \
                                        const size_t local_size[DIMS]) {                               \
        return polder_range(DIMS, offset, global_size, local_size);                                    \
    }
DEFINE_RANGE(2)
DEFINE_RANGE(3)
