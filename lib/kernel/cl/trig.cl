// sin, cos, tan and sincos of floats.
//
// Below 2^20 the argument is reduced by Cody and Waite's method with three floats of pi (for tan and sincos: of pi/2) and fused
// multiplications: x - k P1 is exact, since it is a multiple of 2^-23 below 1. Larger arguments are reduced in doubles, in functions of their
// own. These are cold and never inlined. So lanes run the short code together, and call them where needed, as one call for all lanes. Vectors of 8 and 16,
// which often have no lanes, have such functions for all elements.
// The polynomials up to pi/4 are those of Cephes' sinf (S. Moshier, 1989), that up to pi/2 is minimax. Below 2 ulp, tan below 4 (every
// seventh float below 2^20).
#include "common.h"
#include "fma.h"
#include "looked_up.h"

// True for infinities and NaNs, too.
#define IS_LARGE(X) (!(fabs(X) < 0x1p20f))
#define COLD __attribute__((overloadable, noinline, cold))
// x is m 2^b with b one of 0, 17, 39, 61, 83 and m a whole number below 2^45. Its place takes m (2^b mod 2 pi), with the latter in two parts. The tables are as
// short as those that lanes look up in registers.
static __constant double scale_of_large[8] = {1, 0x1p-17, 0x1p-39, 0x1p-61, 0x1p-83};
static __constant double turn_of_large[8] = {1, -0x1.87586de3accc3p+0, -0x1.5ca6dfeaae1f6p+0, 0x1.f5e64c5397865p+0, -0x1.f8ea37cc75cc6p+0};
static __constant double turn_rest_of_large[8] = {0, -0x1.b6831078e4261p-59, -0x1.60cab403f9f91p-57, 0x1.3540e152f4359p-54, 0x1.104af928957a5p-54};

#define BODY "trig_large.inc"
#include "widths.h"
#undef BODY
#define BODY "trig.inc"
#include "widths.h"
