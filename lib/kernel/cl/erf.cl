// The error function and its complement. Below 6 ulp.
//
// erf(a), a >= 0, of floats is 1 - e^(-a P(a)) with a polynomial P. Of doubles it is Taylor's series around the nearest multiple of 1 / 64: a
// table has the value and the slope there, the other derivatives are the slope times Hermite's polynomials. erfc(a) is e^(-a^2) / (1 + 2 a) times a polynomial in (a - K) / (a + K)
// (M. Shepherd, J. Laframboise, Chebyshev Approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < infinity, 1981).
#include "common.h"
#include "fma.h"
#include "looked_up.h"

#define BODY "erf.inc"
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
__constant const double2 polder_erf_table[512] = {
#include "erf_table.inc"
};
#include "widths.h"
