// Declarations of cl_khr_work_group_uniform_arithmetic, cl_khr_async_work_group_copy_fence and cl_khr_extended_async_copies,
// which Clang's table of built-ins lacks. They are parsed only for programs that may call them.
#pragma once

#include <string_view>

namespace polder::compiler {

inline constexpr const char* work_group_header_path = "/polder-headers/work_group.h";

inline constexpr std::string_view work_group_header = R"(
#define __POLDER_W(R) R __attribute__((overloadable, convergent))
#ifdef cl_khr_work_group_uniform_arithmetic
#define __POLDER_WG(NAME, T)                               \
    __POLDER_W(T) work_group_reduce_##NAME(T);             \
    __POLDER_W(T) work_group_scan_exclusive_##NAME(T);     \
    __POLDER_W(T) work_group_scan_inclusive_##NAME(T);
#define __POLDER_WG_INTEGERS(NAME) \
    __POLDER_WG(NAME, int) __POLDER_WG(NAME, uint) __POLDER_WG(NAME, long) __POLDER_WG(NAME, ulong)
__POLDER_WG(logical_and, int)
__POLDER_WG(logical_or, int)
__POLDER_WG(logical_xor, int)
__POLDER_WG_INTEGERS(and)
__POLDER_WG_INTEGERS(or)
__POLDER_WG_INTEGERS(xor)
__POLDER_WG_INTEGERS(mul)
__POLDER_WG(mul, float)
#ifdef cl_khr_fp64
__POLDER_WG(mul, double)
#endif
#ifdef cl_khr_fp16
__POLDER_WG(mul, half)
#endif
#endif
#ifdef cl_khr_async_work_group_copy_fence
__POLDER_W(void) async_work_group_copy_fence(cl_mem_fence_flags);
#endif
#ifdef cl_khr_extended_async_copies
#define __POLDER_PLANES(TO, FROM)                                                                                  \
    __POLDER_W(event_t) async_work_group_copy_2D2D(TO void*, size_t, const FROM void*, size_t, size_t, size_t,     \
                                                   size_t, size_t, size_t, event_t);                               \
    __POLDER_W(event_t) async_work_group_copy_3D3D(TO void*, size_t, const FROM void*, size_t, size_t, size_t,     \
                                                   size_t, size_t, size_t, size_t, size_t, size_t, event_t);
__POLDER_PLANES(__local, __global)
__POLDER_PLANES(__global, __local)
#endif
)";

}  // namespace polder::compiler
