// sin, cos, tan and sincos of floats.
//
// Below 2^20 the argument is reduced by Cody and Waite's method with three floats of pi (for tan and sincos: of pi/2) and fused
// multiplications: x - k P1 is exact, since it is a multiple of 2^-23 below 1. Larger arguments are reduced in doubles, in functions of their
// own. These are cold and never inlined. So lanes run the short code together, and call them where needed, as one call for all lanes.
// The polynomials up to pi/4 are those of Cephes' sinf (S. Moshier, 1989), that up to pi/2 is minimax. Below 2 ulp, tan below 4 (every
// seventh float below 2^20).
#include "common.h"
#include "fma.h"

// True for infinities and NaNs, too.
#define IS_LARGE(X) (!(fabs(X) < 0x1p20f))
#define COLD __attribute__((overloadable, noinline, cold))
// An angle of at most pi/2 whose sine is that of x + more pi/2, for `more` of 0 or 1.
COLD float polder_sine_angle_of_large(float x, int more);
// r 2^(32 q) for x = r + q pi/2, |r| <= pi/4, q from 0 to 3. No float is nearer to a multiple of pi/2 than 2^-30.
COLD float polder_quarter_angle_of_large(float x);

#define BODY "trig.inc"
#include "widths.h"

// x = *r + quadrant pi/2, |*r| <= pi/4; the quadrant modulo 4. x is m 2^b with b one of 0, 17, 39, 61, 83 and m a whole number below 2^45. Its
// place takes m (2^b mod 2 pi), with the latter in two parts. The tables are as short as those that lanes look up in registers.
static __constant double scale_of_large[8] = {1, 0x1p-17, 0x1p-39, 0x1p-61, 0x1p-83};
static __constant double turn_of_large[8] = {1, -0x1.87586de3accc3p+0, -0x1.5ca6dfeaae1f6p+0, 0x1.f5e64c5397865p+0, -0x1.f8ea37cc75cc6p+0};
static __constant double turn_rest_of_large[8] = {0, -0x1.b6831078e4261p-59, -0x1.60cab403f9f91p-57, 0x1.3540e152f4359p-54, 0x1.104af928957a5p-54};
HELPER int reduce_large(float x, double* r) {
    // From 2^40 on every 22 exponents have a row; infinities have one beyond.
    int row = (((as_int(x) >> 23 & 0xff) - 145) * 745 >> 14) & 7;
    double m = (double)x * scale_of_large[row];
    double turn = turn_of_large[row];
    double y = m * turn;
    double rest = loose_fma(m, turn_rest_of_large[row], close_fma(m, turn, -y));
    double k = rint(y * 0x1.45f306dc9c883p-1);
    double reduced = fma(k, -0x1.921fb54442d18p+0, y);
    *r = fma(k, -0x1.1a62633145c07p-54, reduced) + rest;
    // Of infinity and NaN, a conversion to an integer would be undefined.
    return isfinite(x) ? (int)(k - 4.0 * rint(k * 0.25)) : 0;
}

COLD float polder_sine_angle_of_large(float x, int more) {
    double r;
    int quadrant = reduce_large(x, &r) + more;
    r = (quadrant & 1) != 0 ? 0x1.921fb54442d18p+0 - fabs(r) : r;
    r = (quadrant & 2) != 0 ? -r : r;
    return isfinite(x) ? (float)r : NAN;
}

COLD float polder_quarter_angle_of_large(float x) {
    double r;
    int quadrant = reduce_large(x, &r);
    float scale = as_float(((quadrant & 3) * 32 + 127) << 23);
    return isfinite(x) ? (float)r * scale : NAN;
}
