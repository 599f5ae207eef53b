// Exponentials, logarithms and exponents: without tables, so that they vectorize without gathers, and with subnormal results and arguments.
// Below 1.5 ulp.
//
// e^x = 2^k e^r, r = x - k ln 2 in two steps, |r| <= ln 2 / 2. log(x) = k ln 2 + log(1 + f), sqrt(1/2) <= 1 + f < sqrt(2).
#include "common.h"
#include "fma.h"

#define BODY "exp_log.inc"
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
#include "widths.h"
