// pow, pown, powr and rootn: 2^(y log2|x|) with the logarithm and the product in pairs of numbers, a high part and a rest. Below 3 ulp where
// the result is next to the largest or smallest, else below 2.
//
// log2(m) = 2 / ln 2 (s + s^3 / 3 + ...), s = (m - 1) / (m + 1), |s| < 0.172, with s and s^3 in pairs. Floats keep 2^-30 of the
// logarithm; an exponent of up to 2^7 makes it 2^-23. Doubles keep 2^-65; an exponent of up to 2^10 makes it 2^-55.
#include "common.h"

#define BODY "power.inc"
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
#include "widths.h"
