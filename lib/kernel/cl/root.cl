// cbrt: 1 / x^(1/3) guessed from the exponent's and mantissa's bits, refined by a series in 1 - x r^3 (for doubles also by a step of Newton's), then x r^2
// with one step of Newton's. Below 1 ulp.
#include "common.h"
#include "fma.h"

#define BODY "root.inc"
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
#include "widths.h"
