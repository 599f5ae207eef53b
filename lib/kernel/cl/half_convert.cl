// Conversions from and to half in every mode (OpenCL C 6.4.3, cl_khr_fp16).
#include "common.h"

// Twice the power of two of the largest half. Larger integers round to the same halves, and this one is exact as a float.
#define LARGE 0x20000

#define BODY "half_convert.inc"
#include "widths.h"
