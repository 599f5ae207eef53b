// Stores of halves (OpenCL C 6.15.7): vstore_half and vstorea_half, all widths and rounding modes. libclc's round
// small numbers wrongly upwards and doubles twice. Loads of vectors of halves.
#include "common.h"

#define BODY "half.inc"
#include "widths.h"
