// sin, cos, tan and sincos of floats.
//
// Below 2^20 the argument is reduced by Cody and Waite's method with three floats of pi (for tan and sincos: of pi/2) and fused
// multiplications: x - k P1 is exact, since it is a multiple of 2^-23 below 1. Larger arguments are reduced in doubles, in functions of their
// own. These are cold and never inlined. So lanes run the short code together, and call them one by one where needed.
// The polynomials up to pi/4 are those of Cephes' sinf (S. Moshier, 1989), that up to pi/2 is minimax. Below 2 ulp, tan below 4 (every
// seventh float below 2^20).
#include "common.h"
#include "fma.h"

// True for infinities and NaNs, too.
#define IS_LARGE(X) (!(fabs(X) < 0x1p20f))
#define COLD __attribute__((overloadable, noinline, cold))
COLD float polder_sin_of_large(float x);
COLD float polder_cos_of_large(float x);
COLD float polder_tan_of_large(float x);

#define BODY "trig.inc"
#include "widths.h"

// x = *r + quadrant pi/2, |*r| <= pi/4; the quadrant modulo 4. With pi/2 in two parts, exact enough below 2^40. Beyond that x is
// m 2^b with b one of 17, 39, 61, 83 and m a whole number below 2^45, and m (2^b mod 2 pi), with the latter in two parts, takes its
// place.
#define CHOOSE(SIZE, A, B, C, E)                                                                       \
    ((SIZE) < 0x1p84 ? ((SIZE) < 0x1p62 ? A : B) : ((SIZE) < 0x1p106 ? C : E))
HELPER int reduce_large(float x, float* r) {
    double wide = (double)x;
    double size = fabs(wide);
    double scale = CHOOSE(size, 0x1p-17, 0x1p-39, 0x1p-61, 0x1p-83);
    double turn = CHOOSE(size, -0x1.87586de3accc3p+0, -0x1.5ca6dfeaae1f6p+0, 0x1.f5e64c5397865p+0, -0x1.f8ea37cc75cc6p+0);
    double turn_rest =
        CHOOSE(size, -0x1.b6831078e4261p-59, -0x1.60cab403f9f91p-57, 0x1.3540e152f4359p-54, 0x1.104af928957a5p-54);
    double m = wide * scale;
    double high = m * turn;
    double low = close_fma(m, turn, -high) + m * turn_rest;
    double y = size < 0x1p40 ? wide : high;
    double rest = size < 0x1p40 ? 0.0 : low;
    double k = rint(y * 0x1.45f306dc9c883p-1);
    double reduced = fma(k, -0x1.921fb54442d18p+0, y);
    reduced = fma(k, -0x1.1a62633145c07p-54, reduced) + rest;
    *r = (float)reduced;
    // Of infinity and NaN, a conversion to an integer would be undefined.
    return isfinite(x) ? (int)(k - 4.0 * rint(k * 0.25)) : 0;
}

COLD float polder_sin_of_large(float x) {
    float r;
    int quadrant = reduce_large(x, &r);
    return isfinite(x) ? sine_in_quadrant(quadrant, r) : NAN;
}

COLD float polder_cos_of_large(float x) {
    float r;
    int quadrant = reduce_large(x, &r);
    return isfinite(x) ? sine_in_quadrant(quadrant + 1, r) : NAN;
}

COLD float polder_tan_of_large(float x) {
    float r;
    int quadrant = reduce_large(x, &r);
    return isfinite(x) ? tangent_in_quadrant(quadrant, r) : NAN;
}
