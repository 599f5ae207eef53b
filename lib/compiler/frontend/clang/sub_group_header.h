// The declarations of cl_intel_subgroups, cl_intel_subgroups_char, _short and _long, which Clang's table of built-ins does not
// have. A program gets them only when its source may call them, because parsing takes time.
#pragma once

#include <string_view>

namespace polder::compiler {

inline constexpr const char* sub_group_header_path = "/polder-headers/intel_sub_groups.h";

inline constexpr std::string_view sub_group_header = R"(
#ifdef cl_intel_subgroups
#define __POLDER_T(R) R __attribute__((overloadable, convergent))
#define __POLDER_SHUFFLES(T)                                     \
    __POLDER_T(T) intel_sub_group_shuffle(T, uint);              \
    __POLDER_T(T) intel_sub_group_shuffle_xor(T, uint);          \
    __POLDER_T(T) intel_sub_group_shuffle_down(T, T, uint);      \
    __POLDER_T(T) intel_sub_group_shuffle_up(T, T, uint);
#define __POLDER_VECTORS(M, T) M(T) M(T##2) M(T##3) M(T##4) M(T##8) M(T##16)
__POLDER_VECTORS(__POLDER_SHUFFLES, float)
__POLDER_VECTORS(__POLDER_SHUFFLES, int)
__POLDER_VECTORS(__POLDER_SHUFFLES, uint)
__POLDER_SHUFFLES(long)
__POLDER_SHUFFLES(ulong)
#ifdef cl_khr_fp64
__POLDER_SHUFFLES(double)
#endif
#ifdef cl_khr_fp16
__POLDER_SHUFFLES(half)
#endif
#ifdef __opencl_c_read_write_images
#define __POLDER_IMAGE_BLOCK(T, N, S)                                               \
    __POLDER_T(T##N) intel_sub_group_block_read##S##N(read_only image2d_t, int2);   \
    __POLDER_T(T##N) intel_sub_group_block_read##S##N(read_write image2d_t, int2);  \
    __POLDER_T(void) intel_sub_group_block_write##S##N(write_only image2d_t, int2, T##N); \
    __POLDER_T(void) intel_sub_group_block_write##S##N(read_write image2d_t, int2, T##N);
#elif defined(__IMAGE_SUPPORT__)
#define __POLDER_IMAGE_BLOCK(T, N, S)                                               \
    __POLDER_T(T##N) intel_sub_group_block_read##S##N(read_only image2d_t, int2);   \
    __POLDER_T(void) intel_sub_group_block_write##S##N(write_only image2d_t, int2, T##N);
#else
#define __POLDER_IMAGE_BLOCK(T, N, S)
#endif
#define __POLDER_BLOCK(T, N, S)                                                     \
    __POLDER_T(T##N) intel_sub_group_block_read##S##N(const __global T*);           \
    __POLDER_T(void) intel_sub_group_block_write##S##N(__global T*, T##N);          \
    __POLDER_IMAGE_BLOCK(T, N, S)
#define __POLDER_BLOCKS(T, S) \
    __POLDER_BLOCK(T, , S) __POLDER_BLOCK(T, 2, S) __POLDER_BLOCK(T, 4, S) __POLDER_BLOCK(T, 8, S)
__POLDER_BLOCKS(uint, )
__POLDER_BLOCKS(uint, _ui)
#define __POLDER_BROADCAST(T) __POLDER_T(T) intel_sub_group_broadcast(T, uint);
#define __POLDER_REDUCTION(NAME, T)                             \
    __POLDER_T(T) intel_sub_group_reduce_##NAME(T);             \
    __POLDER_T(T) intel_sub_group_scan_exclusive_##NAME(T);     \
    __POLDER_T(T) intel_sub_group_scan_inclusive_##NAME(T);
#define __POLDER_SMALL(T)                                                              \
    __POLDER_VECTORS(__POLDER_SHUFFLES, T) __POLDER_VECTORS(__POLDER_BROADCAST, T)     \
    __POLDER_REDUCTION(add, T) __POLDER_REDUCTION(min, T) __POLDER_REDUCTION(max, T)
#ifdef cl_intel_subgroups_char
__POLDER_SMALL(char)
__POLDER_SMALL(uchar)
__POLDER_BLOCKS(uchar, _uc)
__POLDER_BLOCK(uchar, 16, _uc)
#endif
#ifdef cl_intel_subgroups_short
__POLDER_SMALL(short)
__POLDER_SMALL(ushort)
__POLDER_BLOCKS(ushort, _us)
__POLDER_BLOCK(ushort, 16, _us)
#endif
#ifdef cl_intel_subgroups_long
__POLDER_BLOCKS(ulong, _ul)
#endif
#endif
)";

}  // namespace polder::compiler
