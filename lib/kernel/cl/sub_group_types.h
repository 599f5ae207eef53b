// Lists of types for the sub-group functions, and their versions for vectors, which call the function for each element.
#pragma once

#pragma OPENCL EXTENSION cl_khr_fp16 : enable

// MACRO(type, the unsigned integer of its size, its bits)
#define FOR_SUB_GROUP_TYPES(MACRO)                                                                     \
    MACRO(char, uchar, 8) MACRO(uchar, uchar, 8) MACRO(short, ushort, 16) MACRO(ushort, ushort, 16)    \
    MACRO(int, uint, 32) MACRO(uint, uint, 32) MACRO(long, ulong, 64) MACRO(ulong, ulong, 64)          \
    MACRO(half, ushort, 16) MACRO(float, uint, 32) MACRO(double, ulong, 64)

// MACRO(type) for integers and for numbers.
#define FOR_SUB_GROUP_INTEGERS(MACRO)                                                                  \
    MACRO(char) MACRO(uchar) MACRO(short) MACRO(ushort) MACRO(int) MACRO(uint) MACRO(long) MACRO(ulong)
#define FOR_SUB_GROUP_NUMBERS(MACRO) FOR_SUB_GROUP_INTEGERS(MACRO) MACRO(half) MACRO(float) MACRO(double)

// Defines NAME for vectors of T out of NAME for T; ARGUMENTS(M) lists one value's arguments, where M(v) is an element of
// the vector v. PARAMETERS(V) are those of the vector function.
#define ELEMENT_0(V) V.s0
#define ELEMENT_1(V) V.s1
#define ELEMENT_2(V) V.s2
#define ELEMENT_3(V) V.s3
#define ELEMENT_4(V) V.s4
#define ELEMENT_5(V) V.s5
#define ELEMENT_6(V) V.s6
#define ELEMENT_7(V) V.s7
#define ELEMENT_8(V) V.s8
#define ELEMENT_9(V) V.s9
#define ELEMENT_a(V) V.sa
#define ELEMENT_b(V) V.sb
#define ELEMENT_c(V) V.sc
#define ELEMENT_d(V) V.sd
#define ELEMENT_e(V) V.se
#define ELEMENT_f(V) V.sf
#define ONE_OF(I, NAME, A) NAME(A(ELEMENT_##I))
#define TWO_OF(I, J, NAME, A) ONE_OF(I, NAME, A), ONE_OF(J, NAME, A)
#define FOUR_OF(I, J, K, L, NAME, A) TWO_OF(I, J, NAME, A), TWO_OF(K, L, NAME, A)
#define EIGHT_OF(NAME, A) FOUR_OF(0, 1, 2, 3, NAME, A), FOUR_OF(4, 5, 6, 7, NAME, A)
#define SIXTEEN_OF(NAME, A) EIGHT_OF(NAME, A), FOUR_OF(8, 9, a, b, NAME, A), FOUR_OF(c, d, e, f, NAME, A)
#define DEFINE_FOR_VECTORS(NAME, T, PARAMETERS, A)                                                     \
    COLLECTIVE T##2 NAME(PARAMETERS(T##2)) { return (T##2)(TWO_OF(0, 1, NAME, A)); }                   \
    COLLECTIVE T##3 NAME(PARAMETERS(T##3)) { return (T##3)(TWO_OF(0, 1, NAME, A), ONE_OF(2, NAME, A)); } \
    COLLECTIVE T##4 NAME(PARAMETERS(T##4)) { return (T##4)(FOUR_OF(0, 1, 2, 3, NAME, A)); }            \
    COLLECTIVE T##8 NAME(PARAMETERS(T##8)) { return (T##8)(EIGHT_OF(NAME, A)); }                       \
    COLLECTIVE T##16 NAME(PARAMETERS(T##16)) { return (T##16)(SIXTEEN_OF(NAME, A)); }
