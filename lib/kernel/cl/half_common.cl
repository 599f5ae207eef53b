// The common, geometric and relational functions of halves (OpenCL C 6.15.4 to 6.15.6, cl_khr_fp16).
#include "common.h"

#define BODY "half_common.inc"
#include "widths.h"
