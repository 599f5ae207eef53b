// pow, pown, powr and rootn: 2^(y log2|x|) with the logarithm and the product in pairs of numbers, a high part and a rest. Below 2 ulp.
//
// log2(m) = 2 / ln 2 (s + s^3 / 3 + ...), s = (m - 1) / (m + 1), |s| < 0.172. Floats have s in a pair and what follows, 1/100 of it, in
// one float, which leaves 2^-30 of the logarithm; an exponent of up to 2^7 makes it 2^-23. Doubles have s^3 in a pair, too: 2^-65 of
// the logarithm, with an exponent of up to 2^10 2^-55.
#include "common.h"

#define BODY "power.inc"
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
#include "widths.h"
