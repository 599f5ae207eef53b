// erfc of doubles for processors with registers of 512 bits: as in erf.cl, with the exponential of exp_wide.cl, which has half as many coefficients. Below
// 6 ulp. builtins.h says when it replaces the other.
#include "common.h"
#include "fma.h"
#include "looked_up.h"

extern __constant const double polder_roots_of_double[16];

#define times_root times_root_of_wide_erfc
#define times_root_and_power times_root_and_power_of_wide_erfc
#define BODY "erf_wide.inc"
#define CORE "double_core.inc"
#include "widths.h"
