// Asynchronous copies between global and local memory (OpenCL C 6.15.11).
//
// The work-items of a group share the copy, neighbours at neighbouring elements. The program may only look at the result
// after wait_group_events, which is a barrier. An event carries nothing.
#include "../common.h"

#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#define DEFINE_COPY(T, TO, FROM)                                                                       \
    COLLECTIVE event_t async_work_group_copy(TO T* to, const FROM T* from, size_t count,               \
                                             event_t event) {                                          \
        for (size_t i = get_local_linear_id(), n = polder_linear_local_size(); i < count; i += n)      \
            to[i] = from[i];                                                                           \
        return event;                                                                                  \
    }
#define DEFINE_COPIES(T) DEFINE_COPY(T, __local, __global) DEFINE_COPY(T, __global, __local)

#define DEFINE_STRIDED_COPIES(T)                                                                       \
    COLLECTIVE event_t async_work_group_strided_copy(__local T* to, const __global T* from,            \
                                                     size_t count, size_t from_stride,                 \
                                                     event_t event) {                                  \
        for (size_t i = get_local_linear_id(), n = polder_linear_local_size(); i < count; i += n)      \
            to[i] = from[i * from_stride];                                                             \
        return event;                                                                                  \
    }                                                                                                  \
    COLLECTIVE event_t async_work_group_strided_copy(__global T* to, const __local T* from,            \
                                                     size_t count, size_t to_stride, event_t event) {  \
        for (size_t i = get_local_linear_id(), n = polder_linear_local_size(); i < count; i += n)      \
            to[i * to_stride] = from[i];                                                               \
        return event;                                                                                  \
    }

#define DEFINE_BOTH(T) DEFINE_COPIES(T) DEFINE_STRIDED_COPIES(T)
#define DEFINE_WIDTHS(T)                                                                               \
    DEFINE_BOTH(T) DEFINE_BOTH(T##2) DEFINE_BOTH(T##3) DEFINE_BOTH(T##4) DEFINE_BOTH(T##8) DEFINE_BOTH(T##16)
FOR_ALL_TYPES(DEFINE_WIDTHS)
DEFINE_WIDTHS(half)

// libclc has the other types' hints; none does anything.
#define DEFINE_PREFETCH(T) \
    BUILTIN void prefetch(const __global T* from, size_t count) {}
DEFINE_PREFETCH(half) DEFINE_PREFETCH(half2) DEFINE_PREFETCH(half3)
DEFINE_PREFETCH(half4) DEFINE_PREFETCH(half8) DEFINE_PREFETCH(half16)

COLLECTIVE void wait_group_events(int count, __generic event_t* events) {
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}
COLLECTIVE void wait_group_events(int count, __private event_t* events) {
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}
