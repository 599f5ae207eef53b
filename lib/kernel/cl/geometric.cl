// length, normalize, and with length distance: by the root of the sum of squares.
//
// Where the sum overflows, or is so small that its parts may have lost bits, the vector is scaled first. libclc has that beside the usual case,
// so lanes compute both, and the squares of usual vectors that were scaled down are subnormal: for each of those an Intel processor takes some 150
// cycles. Here such vectors have functions of their own, which are cold and never inlined: lanes call them where needed, as one call for all lanes.
#include "common.h"

#define COLD __attribute__((overloadable, noinline, cold))
#define SCALE(SUM, SMALLEST, UP, DOWN) ((SUM) < SMALLEST ? UP : DOWN)
#define SQUARES(x, y, z, w) ((x) * (x) + (y) * (y) + (z) * (z) + (w) * (w))

// The scales are powers of two: the square of the large one brings the smallest subnormal number to usual size, and that of the small one keeps the sum
// of the largest squares finite.
#define EXTREMES(F, SMALLEST, UP, DOWN)                                                        \
    COLD F polder_length_of_extremes(F sum, F x, F y, F z, F w) {                              \
        const F scale = SCALE(sum, SMALLEST, UP, DOWN);                                        \
        return sqrt(SQUARES(x * scale, y * scale, z * scale, w * scale)) / scale;              \
    }                                                                                          \
    /* Of the scaled vector; negative where only infinite parts count, and then of a vector with 1 for each of them. */ \
    COLD F polder_inverse_of_extremes(F sum, F x, F y, F z, F w) {                             \
        const F scale = SCALE(sum, SMALLEST, UP, DOWN);                                        \
        const F squares = SQUARES(x * scale, y * scale, z * scale, w * scale);                 \
        const F infinite_parts = (F)(isinf(x) + isinf(y) + isinf(z) + isinf(w));               \
        /* One root, whose flags no other division takes away (compiler/module/quick_kernels.cpp). */ \
        const F inverse = rsqrt(isinf(squares) ? infinite_parts : squares);                    \
        return isinf(squares) ? -inverse : inverse;                                            \
    }
EXTREMES(float, FLT_MIN, 0x1p+86f, 0x1p-66f)
EXTREMES(double, DBL_MIN, 0x1p+563, 0x1p-514)

// Vectors of zeros are usual: a point's distance to itself.
#define IS_EXTREME(SUM, SMALLEST, HAS_PARTS) \
    __builtin_expect(((SUM) < SMALLEST && (HAS_PARTS)) || isinf(SUM), 0)
#define FUNCTIONS(T, F, SMALLEST, UP, DOWN, HAS_PARTS, PARTS, ...)            \
    BUILTIN F length(T p) {                                                   \
        const F sum = dot(p, p);                                              \
        if (IS_EXTREME(sum, SMALLEST, HAS_PARTS))                             \
            return polder_length_of_extremes(sum, __VA_ARGS__);               \
        return sqrt(sum);                                                     \
    }                                                                         \
    BUILTIN T normalize(T p) {                                                \
        const F sum = dot(p, p);                                              \
        F inverse = (HAS_PARTS) ? rsqrt(sum) : (F)1;                          \
        if (IS_EXTREME(sum, SMALLEST, HAS_PARTS)) {                           \
            inverse = polder_inverse_of_extremes(sum, __VA_ARGS__);           \
            p *= SCALE(sum, SMALLEST, UP, DOWN);                              \
            if (__builtin_expect(inverse < 0, 0)) {                           \
                p = (T)PARTS;                                                 \
                inverse = -inverse;                                           \
            }                                                                 \
        }                                                                     \
        return p * inverse;                                                   \
    }
#define PART(F, X) copysign((F)isinf(X), X)
#define FUNCTIONS_OF(F, SMALLEST, UP, DOWN)                                                                               \
    FUNCTIONS(F##2, F, SMALLEST, UP, DOWN, p.x != 0 || p.y != 0, (PART(F, p.x), PART(F, p.y)), p.x, p.y, 0, 0)                  \
    FUNCTIONS(F##3, F, SMALLEST, UP, DOWN, p.x != 0 || p.y != 0 || p.z != 0, (PART(F, p.x), PART(F, p.y), PART(F, p.z)),           \
              p.x, p.y, p.z, 0)                                                                                           \
    FUNCTIONS(F##4, F, SMALLEST, UP, DOWN, p.x != 0 || p.y != 0 || p.z != 0 || p.w != 0,                                  \
              (PART(F, p.x), PART(F, p.y), PART(F, p.z), PART(F, p.w)), p.x, p.y, p.z, p.w)
FUNCTIONS_OF(float, FLT_MIN, 0x1p+86f, 0x1p-66f)
FUNCTIONS_OF(double, DBL_MIN, 0x1p+563, 0x1p-514)
