// pow, pown, powr and rootn: 2^(y log2|x|) with the logarithm and the product in pairs of numbers, a high part and a rest. Below 3 ulp where
// the result is next to the largest or smallest, else below 2.
//
// Floats: log2(m) = 2 / ln 2 (s + s^3 / 3 + ...), s = (m - 1) / (m + 1), |s| < 0.172, with s and s^3 in pairs. They keep 2^-30 of the
// logarithm; an exponent of up to 2^7 makes it 2^-23.
// Doubles: log2(m) = log2(1 + r) - log2(c), r = c m - 1 with a c of eight bits from a table of 128, |r| < 2^-7.4. They keep 2^-62; an
// exponent of up to 2^10 makes it 2^-52.
#include "common.h"
#include "fma.h"

#define BODY "power.inc"
#define POWER_PARTS "power_parts.inc"
#define POWER(NAME) NAME
#define GENERAL_POWER(NAME) BUILTIN R NAME
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
__constant const double4 polder_log2_table[128] = {
#include "log2_table.inc"
};
#include "widths.h"
