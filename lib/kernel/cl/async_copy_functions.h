// Asynchronous copies between global and local memory (OpenCL C 6.15.11), for all targets. The including file defines
//   COPY_CONTIGUOUS(to, from, count)   a statement that copies `count` elements
//   FOR_EACH_ELEMENT(i, count)         the head of a loop over the elements that this work-item copies
// The program may only look at the result after wait_group_events, which is a barrier. An event carries no value.
#pragma once

#include "common.h"

#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#define DEFINE_COPY(T, TO, FROM)                                                                       \
    COLLECTIVE event_t async_work_group_copy(TO T* to, const FROM T* from, size_t count,               \
                                             event_t event) {                                          \
        COPY_CONTIGUOUS(to, from, count)                                                               \
        return event;                                                                                  \
    }
#define DEFINE_COPIES(T) DEFINE_COPY(T, __local, __global) DEFINE_COPY(T, __global, __local)

#define DEFINE_STRIDED_COPIES(T)                                                                       \
    COLLECTIVE event_t async_work_group_strided_copy(__local T* to, const __global T* from,            \
                                                     size_t count, size_t from_stride,                 \
                                                     event_t event) {                                  \
        FOR_EACH_ELEMENT(i, count)                                                                     \
        to[i] = from[i * from_stride];                                                                 \
        return event;                                                                                  \
    }                                                                                                  \
    COLLECTIVE event_t async_work_group_strided_copy(__global T* to, const __local T* from,            \
                                                     size_t count, size_t to_stride, event_t event) {  \
        FOR_EACH_ELEMENT(i, count)                                                                     \
        to[i * to_stride] = from[i];                                                                   \
        return event;                                                                                  \
    }

#define DEFINE_BOTH(T) DEFINE_COPIES(T) DEFINE_STRIDED_COPIES(T)
#define DEFINE_WIDTHS(T)                                                                               \
    DEFINE_BOTH(T) DEFINE_BOTH(T##2) DEFINE_BOTH(T##3) DEFINE_BOTH(T##4) DEFINE_BOTH(T##8) DEFINE_BOTH(T##16)
FOR_ALL_TYPES(DEFINE_WIDTHS)
DEFINE_WIDTHS(half)

// libclc has prefetch for the other types. A prefetch does nothing.
#define DEFINE_PREFETCH(T) \
    BUILTIN void prefetch(const __global T* from, size_t count) {}
DEFINE_PREFETCH(half) DEFINE_PREFETCH(half2) DEFINE_PREFETCH(half3)
DEFINE_PREFETCH(half4) DEFINE_PREFETCH(half8) DEFINE_PREFETCH(half16)

// Copies of lines and planes (cl_khr_extended_async_copies). Lengths and areas count elements.
#define DEFINE_PLANES(TO, FROM)                                                                        \
    COLLECTIVE event_t async_work_group_copy_3D3D(                                                     \
        TO void* to, size_t to_offset, const FROM void* from, size_t from_offset, size_t element_bytes, \
        size_t line_elements, size_t lines, size_t planes, size_t from_line, size_t from_plane,        \
        size_t to_line, size_t to_plane, event_t event) {                                              \
        for (size_t plane = 0; plane < planes; ++plane)                                                \
            for (size_t line = 0; line < lines; ++line) {                                              \
                TO uchar* to_bytes =                                                                   \
                    (TO uchar*)to + (to_offset + plane * to_plane + line * to_line) * element_bytes;   \
                const FROM uchar* from_bytes =                                                         \
                    (const FROM uchar*)from +                                                          \
                    (from_offset + plane * from_plane + line * from_line) * element_bytes;             \
                COPY_CONTIGUOUS(to_bytes, from_bytes, line_elements * element_bytes)                   \
            }                                                                                          \
        return event;                                                                                  \
    }                                                                                                  \
    COLLECTIVE event_t async_work_group_copy_2D2D(                                                     \
        TO void* to, size_t to_offset, const FROM void* from, size_t from_offset, size_t element_bytes, \
        size_t line_elements, size_t lines, size_t from_line, size_t to_line, event_t event) {         \
        return async_work_group_copy_3D3D(to, to_offset, from, from_offset, element_bytes, line_elements, \
                                          lines, 1, from_line, 0, to_line, 0, event);                  \
    }
DEFINE_PLANES(__local, __global)
DEFINE_PLANES(__global, __local)

COLLECTIVE void wait_group_events(int count, __generic event_t* events) {
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}
COLLECTIVE void wait_group_events(int count, __private event_t* events) {
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}
