// hypot of numbers for processors with AVX-512, whose estimates of roots have 14 bits (targets/host/instructions/reciprocals.cpp): below 3 ulp.
//
// The squares of usual arguments are added as they are. Where the sum may have lost bits, overflows or is no number, lanes call a cold function, which
// scales first, and vectors of 8 and 16 one for all elements. builtins.h says when this form replaces libclc's, which shorter vectors keep: a branch for each
// element would take longer.
#include "common.h"
#include "fma.h"

#define COLD __attribute__((overloadable, noinline, cold))
#define BODY "hypot_wide.inc"
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
#include "widths.h"
