// native_tan and half_tan for processors with AVX-512, whose estimates have 14 bits (targets/host/instructions/reciprocals.cpp), and native exponentials by those
// of exp_wide.cl. builtins.h says when they replace those of native.inc.
#include "common.h"
#include "fma.h"

#define BODY "native_wide.inc"
#include "widths.h"
