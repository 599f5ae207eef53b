// Reciprocal roots for processors with AVX-512, whose estimates have 14 bits, of doubles as well: below 1.2 ulp (targets/host/instructions/reciprocals.cpp).
#include "common.h"

#define BODY "root_wide.inc"
#define ROOT_TYPE float
#define IS_SINGLE
#include "widths.h"
#undef ROOT_TYPE
#undef IS_SINGLE
#define ROOT_TYPE double
#include "widths.h"
