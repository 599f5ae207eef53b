// min and max of floats and doubles (OpenCL C 6.15.4), one instruction each on processors. libclc's are fmin and fmax, which return the
// number of a number and a NaN and take three instructions; min and max may return either. For GPUs, libclc's are faster.
#include "common.h"

#define BODY "minimum.inc"
#define REAL float
#include "widths.h"
#undef REAL
#define REAL double
#include "widths.h"
