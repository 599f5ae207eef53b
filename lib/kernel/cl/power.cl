// pow, pown, powr and rootn of floats.
//
// Powers of floats are 2^(y log2|x|) in doubles: log2 to 40 bits is enough for an exponent of up to 150, and a
// subnormal result is rounded once. log2(m) = 2/ln 2 atanh(s), s = (m - 1) / (m + 1). Below 1 ulp.
#include "common.h"

#define BODY "power.inc"
#include "widths.h"
