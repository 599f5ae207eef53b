// sin, cos, tan and sincos of floats, for arguments of any size without a branch.
//
// The argument is reduced in doubles: x - k pi/2 with pi/2 in two parts, exact enough below 2^40. Beyond that x is
// m 2^b with b one of 17, 39, 61, 83 and m a whole number below 2^45, and m (2^b mod 2 pi), with the latter in two parts, takes its
// place. Which b is chosen by selections: gathers from a table are slow on many processors. The polynomials are those of Cephes' sinf (S. Moshier, 1989); below 2 ulp, tan below 3.5.
#include "common.h"

#define BODY "trig.inc"
#include "widths.h"
