// Weaker forms of fma for the library's own functions. All are fma where the processor has an instruction for it.
//
// Elsewhere loose_fma rounds the product, too: for polynomials, and where the product is exact anyway. close_fma has an error just above half a
// unit, is exact where the result is a number of the type, and needs moderate operands: for doubles, factors below 2^990 and no product whose
// last bits are subnormal. It is for the errors of products. whole_fma is the same for a whole number below 2^30 and a constant, as in
// reductions of arguments. polder-retarget-builtins makes calls of the last two LLVM's intrinsic with the flags `afn`, and `afn arcp`, which
// targets/host/instructions/fused_products.h computes.
#pragma once

#define close_fma polder_close_fma
#define whole_fma polder_whole_fma

#define BODY "fma.inc"
#include "widths.h"
#undef BODY
