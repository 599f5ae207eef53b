// The common part of the built-ins: macros for definitions, the intrinsics that they use, and lists of types.
//
// Every function here is OpenCL C for the spir64 target, so that its mangled name is the one that a
// kernel's call produces. Definitions are for one address space where that is enough: the linking
// of the built-ins lets a call of another address space find them (all are one on the host).
//
// Intrinsics are functions without a body: the work-group pass replaces calls of them.
#pragma once

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#define BUILTIN __attribute__((overloadable, always_inline))
// Declares a function of the library that a file calls although it defines the name for other types: a definition hides Clang's table.
#define DECLARED __attribute__((overloadable, const))
#define DECLARED_STORING __attribute__((overloadable))
// For functions that only their file calls.
#define HELPER static inline __attribute__((overloadable))
// For functions that contain a barrier.
#define COLLECTIVE __attribute__((overloadable, always_inline, convergent))

// Whether any element of a long vector is not 0.
#define DEFINE_IS_ANY(T)                                                                               \
    HELPER T is_any(T##4 x) { return x.x | x.y | x.z | x.w; }                                          \
    HELPER T is_any(T##8 x) { return is_any(x.lo | x.hi); }                                            \
    HELPER T is_any(T##16 x) { return is_any(x.lo | x.hi); }
DEFINE_IS_ANY(int)
DEFINE_IS_ANY(long)
#undef DEFINE_IS_ANY

// Intrinsics besides OpenCL's own functions (get_local_id, get_group_id, get_local_size, get_enqueued_local_size,
// get_num_groups, get_global_offset, get_global_size, get_work_dim, barrier).

// 8 bytes for each work-item of the work-group, the same for every caller.
__local ulong* _polder_collective_slots(void) __attribute__((const));
// The first bytes of the work-group's local memory and of its scratch memory, the size of the latter, and the
// launch context.
const __private uchar* _polder_local_memory(void) __attribute__((const));
const __private uchar* _polder_scratch_memory(void) __attribute__((const));
ulong _polder_scratch_bytes(void) __attribute__((const));
const __private uchar* _polder_launch_context(void) __attribute__((const));

// The number of work-items of this work-group, which may be smaller at the end of the range.
static inline __attribute__((always_inline)) size_t polder_linear_local_size(void) {
    return get_local_size(0) * get_local_size(1) * get_local_size(2);
}

// MACRO(type, suffix of the literal, ...) for the types that have vectors.
#define FOR_INTEGER_TYPES(MACRO)                                                                       \
    MACRO(char) MACRO(uchar) MACRO(short) MACRO(ushort) MACRO(int) MACRO(uint) MACRO(long) MACRO(ulong)
#define FOR_ALL_TYPES(MACRO) FOR_INTEGER_TYPES(MACRO) MACRO(float) MACRO(double)
#define FOR_COLLECTIVE_TYPES(MACRO) MACRO(int) MACRO(uint) MACRO(long) MACRO(ulong) MACRO(float) MACRO(double)
