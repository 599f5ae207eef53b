// sinpi, cospi and tanpi: x modulo 2 is exact, and so are the differences to the next half or whole number. Polynomials of the sine up to
// 1/2, for tanpi of both up to 1/4. Below 3 ulp.
#include "common.h"
#include "fma.h"

#define BODY "trig_pi.inc"
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
#include "widths.h"
