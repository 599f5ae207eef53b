// erfc of doubles for processors with registers of 512 bits: as in erf.cl, with the exponential of exp_wide.cl, which has half as many coefficients. Below
// 6 ulp. builtins.h says when it replaces the other, and exp_wide.cl why vectors of 8 and 16 have no such form.
#include "common.h"
#include "fma.h"

extern __constant const double polder_roots_of_double[16];

#define times_root times_root_of_wide_erfc
#define times_root_and_power times_root_and_power_of_wide_erfc
#define BODY "erf_wide.inc"
#define WIDEST_LOOKED_UP 4
#define CORE "double_core.inc"
#include "widths.h"
