// Loads and stores of vectors of halves as they are, and shuffles (OpenCL C 6.15.7 and 6.15.13, cl_khr_fp16).
#include "common.h"

// Vectors in memory are aligned like one element.
#define DEFINE_ACCESS(N, SPACE)                                                                        \
    BUILTIN half##N vload##N(size_t offset, const SPACE half* p) {                                     \
        return *(const SPACE packed_half##N*)(p + offset * N);                                         \
    }                                                                                                  \
    BUILTIN void vstore##N(half##N x, size_t offset, SPACE half* p) {                                  \
        *(SPACE packed_half##N*)(p + offset * N) = x;                                                  \
    }
#define DEFINE_ACCESSES(N)                                                                             \
    typedef half##N packed_half##N __attribute__((aligned(2)));                                        \
    DEFINE_ACCESS(N, __private) DEFINE_ACCESS(N, __generic)                                            \
    DEFINE_ACCESS(N, __global) DEFINE_ACCESS(N, __local)
DEFINE_ACCESSES(2)
DEFINE_ACCESSES(4)
DEFINE_ACCESSES(8)
DEFINE_ACCESSES(16)

#define DEFINE_THREE(SPACE)                                                                            \
    BUILTIN half3 vload3(size_t offset, const SPACE half* p) {                                         \
        p += offset * 3;                                                                               \
        return (half3)(p[0], p[1], p[2]);                                                              \
    }                                                                                                  \
    BUILTIN void vstore3(half3 x, size_t offset, SPACE half* p) {                                      \
        p += offset * 3;                                                                               \
        p[0] = x.x;                                                                                    \
        p[1] = x.y;                                                                                    \
        p[2] = x.z;                                                                                    \
    }
DEFINE_THREE(__private)
DEFINE_THREE(__generic)
DEFINE_THREE(__global)
DEFINE_THREE(__local)

#define DEFINE_SHUFFLE(N, M)                                                                           \
    DECLARED ushort##N shuffle(ushort##M x, ushort##N mask);                                           \
    DECLARED ushort##N shuffle2(ushort##M x, ushort##M y, ushort##N mask);                             \
    BUILTIN half##N shuffle(half##M x, ushort##N mask) {                                               \
        return as_half##N(shuffle(as_ushort##M(x), mask));                                             \
    }                                                                                                  \
    BUILTIN half##N shuffle2(half##M x, half##M y, ushort##N mask) {                                   \
        return as_half##N(shuffle2(as_ushort##M(x), as_ushort##M(y), mask));                           \
    }
#define DEFINE_SHUFFLES(N) DEFINE_SHUFFLE(N, 2) DEFINE_SHUFFLE(N, 4) DEFINE_SHUFFLE(N, 8) DEFINE_SHUFFLE(N, 16)
DEFINE_SHUFFLES(2)
DEFINE_SHUFFLES(4)
DEFINE_SHUFFLES(8)
DEFINE_SHUFFLES(16)
