// Saturated conversions of floating-point values to integers (OpenCL C 6.4.3.3): NaN becomes 0. (libclc's
// conversions do not do this.)
#include "common.h"

#define BODY "convert.inc"
#include "widths.h"
