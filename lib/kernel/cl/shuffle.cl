// shuffle2 of every type, and shuffle of 16 elements of 8 bytes (OpenCL C 6.15.13). libclc has a branch for each element of shuffle2; here it is two shuffles
// of one vector and a choice. Code generation makes one permutation of a shuffle of libclc, where it has one of a register as large as the vector. 16
// elements of 8 bytes are shuffled as two vectors of 8.
#include "common.h"

#define DEFINE_CHOICE(T, U, N, M)                                                                      \
    BUILTIN T##N shuffle2(T##M x, T##M y, U##N mask) {                                                 \
        return (mask & (U)M) != (U)0 ? shuffle(y, mask) : shuffle(x, mask);                            \
    }
#define DEFINE_SHUFFLE2(T, U, N, M)                                                                    \
    DECLARED T##N shuffle(T##M x, U##N mask);                                                          \
    DEFINE_CHOICE(T, U, N, M)
#define DEFINE_FROM(T, U, N) DEFINE_SHUFFLE2(T, U, N, 2) DEFINE_SHUFFLE2(T, U, N, 4) DEFINE_SHUFFLE2(T, U, N, 8)
#define DEFINE_FROM_ALL(T, U, N) DEFINE_FROM(T, U, N) DEFINE_SHUFFLE2(T, U, N, 16)
#define DEFINE_SHORT(T, U) DEFINE_FROM_ALL(T, U, 2) DEFINE_FROM_ALL(T, U, 4) DEFINE_FROM_ALL(T, U, 8)
#define DEFINE_ALL(T, U) DEFINE_SHORT(T, U) DEFINE_FROM_ALL(T, U, 16)
DEFINE_ALL(char, uchar)
DEFINE_ALL(uchar, uchar)
DEFINE_ALL(short, ushort)
DEFINE_ALL(ushort, ushort)
DEFINE_ALL(int, uint)
DEFINE_ALL(uint, uint)
DEFINE_ALL(float, uint)

#define DEFINE_LONG(T)                                                                                 \
    DEFINE_SHORT(T, ulong)                                                                             \
    DEFINE_FROM(T, ulong, 16)                                                                          \
    BUILTIN T##16 shuffle(T##16 x, ulong16 mask) {                                                     \
        return (T##16)(shuffle2(x.lo, x.hi, mask.lo), shuffle2(x.lo, x.hi, mask.hi));                  \
    }                                                                                                  \
    DEFINE_CHOICE(T, ulong, 16, 16)
DEFINE_LONG(long)
DEFINE_LONG(ulong)
DEFINE_LONG(double)
