// The math functions of halves (OpenCL C 6.15.2, cl_khr_fp16): computed as floats and rounded once more.
//
// A float has 24 bits and a half 11. With 2 * 11 + 2 bits or more, rounding a correctly rounded sum, difference, product, quotient or square
// root a second time gives what one rounding gives (S. Figueroa, "When is double rounding innocuous?", 1995). The other functions
// are off by a few units of a float, which is less than 1/1000 of a half's; logarithms, cube roots and tanpi have shorter forms of 2^-21. fma computes
// the product, which is exact in a float, the sum, and what the sum has lost. A sum that is not exact becomes the odd one of the two floats around the
// exact number ("rounding to odd"), so that it is no middle between two halves.
#include "common.h"
#include "fma.h"

#define BODY "half_math.inc"
#include "widths.h"
