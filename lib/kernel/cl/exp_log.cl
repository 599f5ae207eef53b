// Exponentials and logarithms of floats: without tables, so that they vectorize without gathers, and with
// subnormal results and arguments, which libclc flushes to zero. Below 1.5 ulp.
//
// exp(x) = 2^k exp(r), r = x - k ln 2, with Taylor's polynomial up to r^7 (|r| < 0.35: below 0.1 ulp).
// log(x) = k ln 2 + log(1 + f), sqrt(1/2) <= 1 + f < sqrt(2), with the polynomial of Cephes' logf
// (S. Moshier, Methods and Programs for Mathematical Functions, 1989).
#include "common.h"

#define BODY "exp_log.inc"
#include "widths.h"
