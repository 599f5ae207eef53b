// sinpi, cospi and tanpi: x - q / 2 is exact for the nearest half q / 2; polynomials up to 1/4. Below 3 ulp.
#include "common.h"

#define BODY "trig_pi.inc"
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
#include "widths.h"
