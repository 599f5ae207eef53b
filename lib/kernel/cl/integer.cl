// cl_khr_extended_bit_ops, cl_khr_integer_dot_product (OpenCL C 6.15.3 and the extensions), and products of 24 bits.
#include "common.h"

#define FOR_BIT_TYPES(MACRO)                                                                           \
    MACRO(char, uchar, char, 8) MACRO(uchar, uchar, char, 8) MACRO(short, ushort, short, 16)           \
    MACRO(ushort, ushort, short, 16) MACRO(int, uint, int, 32) MACRO(uint, uint, int, 32)              \
    MACRO(long, ulong, long, 64) MACRO(ulong, ulong, long, 64)

// `count` bits of ones. OpenCL C's shifts are modulo the width, hence the two shifts.
#define ONES(U, BITS, COUNT) ((U)((COUNT) == 0 ? (U)0 : (U)((U)(~(U)0) >> (U)((BITS) - (COUNT)))))

#define DEFINE_BITFIELDS(T, U, S, BITS)                                                                \
    BUILTIN T bitfield_insert(T base, T insert, uint offset, uint count) {                             \
        U mask = (U)(ONES(U, BITS, count) << (U)offset);                                               \
        return (T)(((U)base & (U)~mask) | ((U)((U)insert << (U)offset) & mask));                       \
    }                                                                                                  \
    BUILTIN S bitfield_extract_signed(T base, uint offset, uint count) {                               \
        S top = (S)((U)base << (U)(BITS - offset - count));                                            \
        return count == 0 ? (S)0 : (S)(top >> (S)(BITS - count));                                      \
    }                                                                                                  \
    BUILTIN U bitfield_extract_unsigned(T base, uint offset, uint count) {                             \
        return (U)((U)((U)base >> (U)offset) & ONES(U, BITS, count));                                  \
    }                                                                                                  \
    BUILTIN T bit_reverse(T base) { return __builtin_elementwise_bitreverse(base); }
FOR_BIT_TYPES(DEFINE_BITFIELDS)

#define DEFINE_BITFIELD_VECTORS(T, U, S, BITS, N)                                                      \
    BUILTIN T##N bitfield_insert(T##N base, T##N insert, uint offset, uint count) {                    \
        U mask = (U)(ONES(U, BITS, count) << (U)offset);                                               \
        U##N field = (as_##U##N(insert) << (U##N)((U)offset)) & (U##N)(mask);                          \
        return as_##T##N((as_##U##N(base) & (U##N)((U)~mask)) | field);                                \
    }                                                                                                  \
    BUILTIN S##N bitfield_extract_signed(T##N base, uint offset, uint count) {                         \
        S##N top = as_##S##N(as_##U##N(base) << (U##N)((U)(BITS - offset - count)));                   \
        return count == 0 ? (S##N)0 : top >> (S##N)((S)(BITS - count));                                \
    }                                                                                                  \
    BUILTIN U##N bitfield_extract_unsigned(T##N base, uint offset, uint count) {                       \
        return (as_##U##N(base) >> (U##N)((U)offset)) & (U##N)(ONES(U, BITS, count));                  \
    }                                                                                                  \
    BUILTIN T##N bit_reverse(T##N base) { return __builtin_elementwise_bitreverse(base); }
#define DEFINE_ALL_BITFIELD_VECTORS(T, U, S, BITS)                                                     \
    DEFINE_BITFIELD_VECTORS(T, U, S, BITS, 2) DEFINE_BITFIELD_VECTORS(T, U, S, BITS, 3)                \
    DEFINE_BITFIELD_VECTORS(T, U, S, BITS, 4) DEFINE_BITFIELD_VECTORS(T, U, S, BITS, 8)                \
    DEFINE_BITFIELD_VECTORS(T, U, S, BITS, 16)
FOR_BIT_TYPES(DEFINE_ALL_BITFIELD_VECTORS)

// A product of 4 pairs of 8 bits cannot overflow; only the accumulation saturates.
#define DEFINE_DOT(RESULT, A, B, PACKED)                                                               \
    BUILTIN RESULT dot(A##4 a, B##4 b) {                                                               \
        RESULT##4 products = convert_##RESULT##4(a) * convert_##RESULT##4(b);                          \
        return products.x + products.y + products.z + products.w;                                      \
    }                                                                                                  \
    BUILTIN RESULT dot_acc_sat(A##4 a, B##4 b, RESULT accumulator) {                                   \
        return __builtin_elementwise_add_sat(dot(a, b), accumulator);                                  \
    }                                                                                                  \
    BUILTIN RESULT dot_4x8packed_##PACKED##_##RESULT(uint a, uint b) {                                 \
        return dot(as_##A##4(a), as_##B##4(b));                                                        \
    }                                                                                                  \
    BUILTIN RESULT dot_acc_sat_4x8packed_##PACKED##_##RESULT(uint a, uint b, RESULT accumulator) {     \
        return dot_acc_sat(as_##A##4(a), as_##B##4(b), accumulator);                                   \
    }
DEFINE_DOT(uint, uchar, uchar, uu)
DEFINE_DOT(int, char, char, ss)
DEFINE_DOT(int, uchar, char, us)
DEFINE_DOT(int, char, uchar, su)

// Operands of more than 24 bits give a result that the implementation chooses (OpenCL C 6.15.3), so none is cut to 24 bits.
#define DEFINE_24_BIT_PRODUCTS(T, N)                                                                   \
    BUILTIN T##N mul24(T##N x, T##N y) { return as_##T##N(as_uint##N(x) * as_uint##N(y)); }            \
    BUILTIN T##N mad24(T##N x, T##N y, T##N z) {                                                       \
        return as_##T##N(as_uint##N(x) * as_uint##N(y) + as_uint##N(z));                               \
    }
#define DEFINE_ALL_24_BIT_PRODUCTS(T)                                                                  \
    DEFINE_24_BIT_PRODUCTS(T, ) DEFINE_24_BIT_PRODUCTS(T, 2) DEFINE_24_BIT_PRODUCTS(T, 3)              \
    DEFINE_24_BIT_PRODUCTS(T, 4) DEFINE_24_BIT_PRODUCTS(T, 8) DEFINE_24_BIT_PRODUCTS(T, 16)
DEFINE_ALL_24_BIT_PRODUCTS(int)
DEFINE_ALL_24_BIT_PRODUCTS(uint)
