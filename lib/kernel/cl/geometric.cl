// length, distance, normalize: by the root of the sum of squares.
//
// Where the sum overflows, or is so small that its parts may have lost bits, the vector is scaled first. libclc has that beside the usual case,
// so lanes compute both, and the squares of usual vectors that were scaled down are subnormal: for each of those an Intel processor takes some 150
// cycles. Here such vectors have functions of their own, which are cold and never inlined: lanes call them where needed, as one call for all lanes.
#include "common.h"

#define COLD __attribute__((overloadable, noinline, cold))
#define SCALE(SUM, LIMIT, UP, DOWN) ((SUM) < LIMIT ? UP : DOWN)
#define SQUARES(x, y, z, w) ((x) * (x) + (y) * (y) + (z) * (z) + (w) * (w))

// The scales are powers of two: the square of the large one brings the smallest subnormal number to usual size, and that of the small one keeps the sum
// of the largest squares finite.
// Tiny parts are scaled by their bits, because an Intel processor takes some 150 cycles for a product with a subnormal number, too. For the same reason a
// subnormal length is a whole multiple of the smallest number, UNIT times the scaled one. Lengths of large parts are larger than that when they are scaled.
// Below LIMIT, squares of parts that count may be subnormal: programs that are built with -cl-denorms-are-zero would lose them.
#define EXTREMES(F, BITS, MANTISSA_BITS, EXPONENT_UP, SMALLEST, LIMIT, UP, DOWN, UNIT)         \
    HELPER F scaled_up(F x) {                                                                  \
        const BITS exponent = (BITS)EXPONENT_UP << MANTISSA_BITS;                              \
        const F scaled = as_##F(as_##BITS(x) + exponent);                                      \
        const F first_bit = copysign(as_##F(exponent + ((BITS)1 << MANTISSA_BITS)), x);        \
        return fabs(x) < SMALLEST ? scaled + scaled - first_bit : scaled;                      \
    }                                                                                          \
    HELPER F moderate_part(F sum, F x) { return (sum) < LIMIT ? scaled_up(x) : x * DOWN; }     \
    COLD F polder_length_of_extremes(F sum, F x, F y, F z, F w) {                              \
        x = moderate_part(sum, x), y = moderate_part(sum, y);                                  \
        z = moderate_part(sum, z), w = moderate_part(sum, w);                                  \
        const F root = sqrt(SQUARES(x, y, z, w)), whole_from = (F)((BITS)1 << MANTISSA_BITS);  \
        const BITS multiple = as_##BITS(root * UNIT + whole_from) - as_##BITS(whole_from);     \
        const F least = SMALLEST * UP;                                                         \
        const F normal = (root < least ? least : root) / SCALE(sum, LIMIT, UP, DOWN);          \
        return root <= least ? as_##F(multiple) : normal;                                      \
    }                                                                                          \
    /* Of the scaled vector; negative where only infinite parts count, and then of a vector with 1 for each of them. */ \
    COLD F polder_inverse_of_extremes(F sum, F x, F y, F z, F w) {                             \
        const F infinite_parts = (F)(isinf(x) + isinf(y) + isinf(z) + isinf(w));               \
        x = moderate_part(sum, x), y = moderate_part(sum, y);                                  \
        z = moderate_part(sum, z), w = moderate_part(sum, w);                                  \
        const F squares = SQUARES(x, y, z, w);                                                 \
        /* One root, whose flags no other division takes away (compiler/module/quick_kernels.cpp). */ \
        const F inverse = rsqrt(isinf(squares) ? infinite_parts : squares);                    \
        return isinf(squares) ? -inverse : inverse;                                            \
    }
#define FLOAT_LIMIT 0x1p-100f
#define DOUBLE_LIMIT 0x1p-966
EXTREMES(float, int, 23, 86, FLT_MIN, FLOAT_LIMIT, 0x1p+86f, 0x1p-66f, 0x1p+63f)
EXTREMES(double, long, 52, 563, DBL_MIN, DOUBLE_LIMIT, 0x1p+563, 0x1p-514, 0x1p+511)

// Vectors of zeros are usual: a point's distance to itself. One condition without branches, so that lanes skip all that only extremes need.
#define IS_EXTREME(SUM, F, BITS, LIMIT, ALL_BITS)                                                                          \
    __builtin_expect((as_u##BITS(as_##BITS(SUM) - as_##BITS((F)LIMIT)) >=                                                 \
                      as_u##BITS(as_##BITS((F)INFINITY) - as_##BITS((F)LIMIT))) &                                         \
                         ((BITS)((u##BITS)(ALL_BITS) << 1) != 0), 0)
#define FUNCTIONS(T, F, BITS, LIMIT, ALL_BITS, PARTS, SCALED, ...)            \
    BUILTIN F length(T p) {                                                   \
        const F sum = dot(p, p);                                              \
        F result = sqrt(sum);                                                 \
        if (IS_EXTREME(sum, F, BITS, LIMIT, ALL_BITS))                        \
            result = polder_length_of_extremes(sum, __VA_ARGS__);             \
        return result;                                                        \
    }                                                                         \
    BUILTIN F distance(T from, T to) { return length(to - from); }            \
    BUILTIN T normalize(T p) {                                                \
        const F sum = dot(p, p);                                              \
        F inverse = sum == 0 ? (F)1 : rsqrt(sum);                             \
        if (IS_EXTREME(sum, F, BITS, LIMIT, ALL_BITS)) {                      \
            const F found = polder_inverse_of_extremes(sum, __VA_ARGS__);     \
            p = found < 0 ? (T)PARTS : (T)SCALED;                             \
            inverse = fabs(found);                                            \
        }                                                                     \
        return p * inverse;                                                   \
    }
#define PART(F, X) copysign((F)isinf(X), X)
#define SCALED(X) moderate_part(sum, X)
#define FUNCTIONS_OF(F, BITS, LIMIT)                                                                                      \
    FUNCTIONS(F##2, F, BITS, LIMIT, as_##BITS(p.x) | as_##BITS(p.y), (PART(F, p.x), PART(F, p.y)),                        \
              (SCALED(p.x), SCALED(p.y)), p.x, p.y, 0, 0)                                                                 \
    FUNCTIONS(F##3, F, BITS, LIMIT, as_##BITS(p.x) | as_##BITS(p.y) | as_##BITS(p.z),                                     \
              (PART(F, p.x), PART(F, p.y), PART(F, p.z)), (SCALED(p.x), SCALED(p.y), SCALED(p.z)), p.x, p.y, p.z, 0)      \
    FUNCTIONS(F##4, F, BITS, LIMIT, as_##BITS(p.x) | as_##BITS(p.y) | as_##BITS(p.z) | as_##BITS(p.w),                    \
              (PART(F, p.x), PART(F, p.y), PART(F, p.z), PART(F, p.w)),                                                   \
              (SCALED(p.x), SCALED(p.y), SCALED(p.z), SCALED(p.w)), p.x, p.y, p.z, p.w)
FUNCTIONS_OF(float, int, FLOAT_LIMIT)
FUNCTIONS_OF(double, long, DOUBLE_LIMIT)
