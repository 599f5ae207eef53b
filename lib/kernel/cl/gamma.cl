// The gamma function, and of floats its logarithm: Lanczos' approximation, gamma(y) = N(y) / (y D(y)) b^(y - 1/2) e^-b with
// b = y + g - 1/2, for y = |x|, and the reflection formula for negative x, in which y cancels. Without branches.
//
// Doubles: N and D have the 13 coefficients of Boost.Math's lanczos13m53 (g = 6.0246...). Floats are computed in doubles, with
// D(y) = (y + 1) ... (y + 6), g = 5.5 and a minimax N by Remez's exchange algorithm: 2^-47, so that the logarithm next to its zeros at 1 and 2
// is still a float's.
#include "common.h"
#include "fma.h"

#define BODY "gamma.inc"
#include "widths.h"
