// libclc's math functions whose results are wrong for special arguments: zeros of the wrong sign, infinities,
// exponents and products that overflow. For other arguments they are right and are called: the name of a
// replaced function begins with "libclc.".
//
// The results are those that OpenCL C requires in 7.5.1 (and C99's annex F).
#include "common.h"

#define BODY "corrections.inc"
#include "widths.h"
