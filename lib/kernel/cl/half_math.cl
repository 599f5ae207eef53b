// The math functions of halves (OpenCL C 6.15.2, cl_khr_fp16): computed as floats and rounded once more.
//
// A float has 24 bits and a half 11. With 2 * 11 + 2 bits or more, rounding a correctly rounded sum, difference, product, quotient or square
// root a second time gives what one rounding gives (S. Figueroa, "When is double rounding innocuous?", 1995). The other functions
// are off by a few units of a float, which is less than 1/1000 of a half's. fma is computed as a double: the product of two halves is exact
// there, and where the sum is not, one addend is smaller than the other by 30 powers of two, too small to move a half.
#include "common.h"

#define BODY "half_math.inc"
#include "widths.h"
