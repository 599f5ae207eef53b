// sin, cos, tan and sincos of doubles. Below 2.5 ulp, tan below 4.
//
// Below 2^30 the argument is reduced by Cody and Waite's method with three doubles of pi (for tan and sincos: of pi/2) and fused
// multiplications: x - k P1 is exact. Beyond it, Payne and Hanek's (1983): whole numbers times those bits of 2/pi that
// matter, in functions of their own. They are cold and never inlined, so that lanes run the short code together and call them where needed.
// Vectors of 8 and 16, which often have no lanes, have such functions for all elements. The polynomials up to pi/4 are fdlibm's (Sun Microsystems, 1993), those up to pi/2 minimax, by Remez's exchange algorithm.
#include "common.h"
#include "fma.h"
#include "looked_up.h"

#define HALF_PI_1 0x1.921fb54442d18p+0
#define HALF_PI_2 0x1.1a62633145c07p-54
#define HALF_PI_3 -0x1.f1976b7ed8fbcp-110

// 64 zeros, then the bits of 2/pi.
static __constant ulong bits_of_two_over_pi[] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
    0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
    0xf0cfbc209af4361d, 0xa9e391615ee61b08,
};

// True for infinities and NaNs, too.
#define IS_HUGE(X) (!(fabs(X) < 0x1p30))
#define COLD __attribute__((overloadable, noinline, cold))
#define BODY "trig_huge.inc"
#include "widths.h"
#undef BODY
#define BODY "trig_double.inc"
#include "widths.h"
