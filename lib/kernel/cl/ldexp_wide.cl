// ldexp for processors with AVX-512, where it is one instruction, which rounds once.
#include "common.h"

#define BODY "ldexp_wide.inc"
#include "widths.h"
