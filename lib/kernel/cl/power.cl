// pow, pown, powr and rootn of floats, and exp and log of doubles.
//
// Powers of floats are 2^(y log2|x|) in doubles: log2 to 40 bits is enough for an exponent of up to 150, and a
// subnormal result is rounded once. log2(m) = 2/ln 2 atanh(s), s = (m - 1) / (m + 1). Below 1 ulp.
// exp of doubles is Taylor's polynomial up to r^13 (|r| < 0.35), log the one of fdlibm (Sun Microsystems, 1993).
#include "common.h"

#define BODY "power.inc"
#include "widths.h"
