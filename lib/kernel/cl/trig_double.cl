// sin, cos, tan and sincos of doubles. Below 2.5 ulp, tan below 4.
//
// Below 2^30 the argument is reduced by Cody and Waite's method with three doubles of pi (for tan and sincos: of pi/2) and fused
// multiplications: x - k P1 is exact. Beyond it, Payne and Hanek's (1983): whole numbers times those bits of 2/pi that
// matter, in functions of their own. They are cold and never inlined, so that lanes run the short code together and call them where needed. The polynomials up to pi/4 are fdlibm's (Sun Microsystems, 1993), those up to pi/2 minimax, by Remez's exchange algorithm.
#include "common.h"
#include "fma.h"

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

// |x| = k pi/2 + *r + *rest, |*r| <= pi/4, for |x| >= 2^30; returns k modulo 4.
HELPER long reduce_huge(double x, double* r, double* rest) {
    ulong bits = as_ulong(x) & 0x7fffffffffffffff;
    ulong m = (bits & 0xfffffffffffff) | 0x10000000000000;
    // |x| = m 2^e. The bits before the first one that is used contribute multiples of 4, which do not matter.
    int e = min((int)(bits >> 52), 0x7fe) - 1075;
    int first = 64 + e - 2;
    int word = first >> 6, shift = first & 63;
    ulong w0 = bits_of_two_over_pi[word], w1 = bits_of_two_over_pi[word + 1];
    ulong w2 = bits_of_two_over_pi[word + 2], w3 = bits_of_two_over_pi[word + 3];
    ulong high = w0 << shift | w1 >> 1 >> (63 - shift);
    ulong middle = w1 << shift | w2 >> 1 >> (63 - shift);
    ulong low = w2 << shift | w3 >> 1 >> (63 - shift);
    // The product in 32 bits at a time, which lanes multiply. The last ones do not matter.
    const ulong mask = 0xffffffff;
    ulong m0 = m & mask, m1 = m >> 32;
    ulong carry = m0 * (low & mask) >> 32, digit, upper;
#define NEXT_DIGIT(BITS, BITS_BELOW)                                                                   \
    digit = m0 * (BITS) + carry, upper = m1 * (BITS_BELOW) + (digit & mask);                           \
    carry = (digit >> 32) + (upper >> 32);                                                             \
    digit = upper & mask
    NEXT_DIGIT(low >> 32, low & mask);
    ulong p0 = digit;
    NEXT_DIGIT(middle & mask, low >> 32);
    ulong p1 = digit;
    NEXT_DIGIT(middle >> 32, middle & mask);
    p1 |= digit << 32;
    NEXT_DIGIT(high & mask, middle >> 32);
    ulong p2 = digit;
    NEXT_DIGIT(high >> 32, high & mask);
    p2 |= digit << 32;
#undef NEXT_DIGIT
    // Two bits of quadrant, then the fraction, made one between -1/2 and 1/2.
    long quadrant = (long)(p2 >> 62);
    ulong f1 = p2 << 2 | p1 >> 62, f0 = p1 << 2 | p0 >> 30;
    ulong is_upper = f1 >> 63;
    quadrant += (long)is_upper;
    ulong flip = 0 - is_upper;
    f1 ^= flip;
    f0 ^= flip;
    ulong zeros = clz(f1);
    f1 = zeros == 0 ? f1 : f1 << zeros | f0 >> (64 - zeros);
    f0 <<= zeros;
    double scale = as_double((1023 - zeros) << 52);
    double top = (double)(f1 >> 11) * 0x1p-53 * scale;
    double bottom = (double)((f1 & 0x7ff) << 42 | f0 >> 22) * 0x1p-106 * scale;
    double product = top * HALF_PI_1;
    double lost = close_fma(top, HALF_PI_1, -product) + loose_fma(top, HALF_PI_2, bottom * HALF_PI_1);
    double sum = product + lost;
    lost -= sum - product;
    *r = is_upper ? -sum : sum;
    *rest = is_upper ? -lost : lost;
    return quadrant;
}

// True for infinities and NaNs, too.
#define IS_HUGE(X) (!(fabs(X) < 0x1p30))
#define COLD __attribute__((overloadable, noinline, cold))
// An angle of at most pi/2 whose sine is that of x + more pi/2, for `more` of 0 or 1.
COLD double polder_sine_angle_of_huge(double x, int more);
// r 2^(128 q) for x = r + q pi/2, |r| <= pi/4, q from 0 to 3. No double is nearer to a multiple of pi/2 than 2^-63.
COLD double polder_quarter_angle_of_huge(double x);

#define BODY "trig_double.inc"
#include "widths.h"

COLD double polder_sine_angle_of_huge(double x, int more) {
    double r, rest;
    // The sine of -|x| + pi/2 is that of |x| + pi/2.
    long quadrant = reduce_huge(x, &r, &rest) + more;
    double other = HALF_PI_1 - fabs(r) + (HALF_PI_2 - copysign(1.0, r) * rest);
    r = (quadrant & 1) != 0 ? other : r;
    r = ((quadrant & 2) != 0) != (more == 0 && x < 0) ? -r : r;
    return isfinite(x) ? r : NAN;
}

COLD double polder_quarter_angle_of_huge(double x) {
    double r, rest;
    long quadrant = reduce_huge(x, &r, &rest);
    quadrant = x < 0 ? -quadrant : quadrant;
    double scale = as_double(((quadrant & 3) * 128 + 1023) << 52);
    return isfinite(x) ? copysign(1.0, x) * r * scale : NAN;
}
