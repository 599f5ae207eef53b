// pow, pown, powr and rootn of doubles: 2^(y log2|x|) with the logarithm, the product and the fraction in pairs of
// doubles, a high part and a rest. Below 2 ulp.
//
// log(m) = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172: 2 s and 2/3 s^3 in pairs, what follows in one double, whose
// error is then 2^-65 of the whole; an exponent of up to 2^10 leaves 2^-55 of it.
#include "common.h"

#define BODY "power_double.inc"
#include "widths.h"
