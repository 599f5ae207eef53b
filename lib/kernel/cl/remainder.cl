// fmod, remainder and remquo: exact.
//
// A quotient that is a whole number below 2^22 (doubles: 2^51) leaves size - quotient * divisor, which one fused operation computes
// exactly, because the difference is a multiple of the divisor's last place and below the divisor. If the rounded division was one too large,
// the divisor is added back once. Larger quotients and special values have functions of their own, never inlined, which are called for
// each lane that needs them: long division of the integers that the arguments are in units of the divisor's last place, as many
// bits at a time as 64 bits hold.
#include "common.h"
#include "fma.h"

// |x| as mantissa * 2^exponent, exponent at least that of the smallest subnormal number.
typedef struct {
    ulong mantissa;
    int exponent;
} Parts;

static inline Parts parts_of(double x) {
    ulong bits = as_ulong(x) & ~(1ul << 63);
    int biased = (int)(bits >> 52);
    Parts parts;
    parts.mantissa = (bits & ((1ul << 52) - 1)) | (biased != 0 ? 1ul << 52 : 0);
    parts.exponent = max(biased, 1) - 1075;
    return parts;
}

static inline double value_of(Parts parts) {
    // A remainder has at most the divisor's bits: the first product is exact.
    double m = (double)parts.mantissa;
    return parts.exponent < -1000 ? m * as_double((ulong)(parts.exponent + 200 + 1023) << 52) * 0x1p-200
                                  : m * as_double((ulong)(parts.exponent + 1023) << 52);
}

// |x| mod |y| for finite x and finite, non-zero y. *quotient's low 32 bits are those of the quotient.
static inline double magnitude_mod(double x, double y, uint* quotient) {
    Parts a = parts_of(x);
    Parts b = parts_of(y);
    *quotient = 0;
    if (fabs(x) < fabs(y))
        return fabs(x);
    double whole = trunc(fabs(x) / fabs(y));
    if (whole < 0x1p52) {
        double rest = fma(-whole, fabs(y), fabs(x));
        *quotient = (uint)(ulong)whole - (rest < 0 ? 1 : 0);
        return rest < 0 ? rest + fabs(y) : rest;
    }
    // y's trailing zeros become part of its exponent, so that more bits fit at a time.
    int shift = (int)ctz(b.mantissa);
    int spare = min(shift, a.exponent - b.exponent);
    b.mantissa >>= spare;
    b.exponent += spare;
    int step = (int)clz(b.mantissa) - 1;
    ulong q = a.mantissa / b.mantissa;
    ulong r = a.mantissa - q * b.mantissa;
    for (int left = a.exponent - b.exponent; left > 0;) {
        int bits = min(left, step);
        r <<= bits;
        ulong digits = r / b.mantissa;
        r -= digits * b.mantissa;
        q = (q << bits) + digits;
        left -= bits;
    }
    *quotient = (uint)q;
    Parts result;
    result.mantissa = r;
    result.exponent = b.exponent;
    return value_of(result);
}

static inline bool has_remainder(double x, double y) { return isfinite(x) && !isnan(y) && y != 0.0; }

static inline double remainder_and_quotient(double x, double y, int* quotient) {
    *quotient = 0;
    if (!has_remainder(x, y))
        return NAN;
    if (isinf(y))
        return x;
    uint q;
    double r = magnitude_mod(x, y, &q);
    double ay = fabs(y);
    // To the nearest multiple, ties to the even one. r + r may overflow, ay - r does not.
    if (r > ay - r || (r == ay - r && (q & 1) != 0)) {
        r -= ay;
        ++q;
    }
    bool is_negative = signbit(x) != signbit(y);
    *quotient = is_negative ? -(int)(q & 127) : (int)(q & 127);
    return r == 0 ? copysign(0.0, x) : signbit(x) ? -r : r;
}

#define COLD __attribute__((overloadable, noinline, cold))
COLD double polder_fmod_of_far(double x, double y) {
    uint quotient;
    if (!has_remainder(x, y))
        return NAN;
    return isinf(y) ? x : copysign(magnitude_mod(x, y, &quotient), x);
}
COLD double polder_remainder_of_far(double x, double y) {
    int quotient;
    return remainder_and_quotient(x, y, &quotient);
}
COLD int polder_quotient_of_far(double x, double y) {
    int quotient;
    remainder_and_quotient(x, y, &quotient);
    return quotient;
}

// Floats have functions of their own, so that a kernel of floats has no doubles, of which a vector holds only half as many. A float's remainder of floats is a
// float, and a double holds both exactly.
COLD float polder_fmod_of_far(float x, float y) { return (float)polder_fmod_of_far((double)x, (double)y); }
COLD float polder_remainder_of_far(float x, float y) { return (float)polder_remainder_of_far((double)x, (double)y); }
COLD int polder_quotient_of_far(float x, float y) { return polder_quotient_of_far((double)x, (double)y); }

#define BODY "remainder.inc"
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
#include "widths.h"
