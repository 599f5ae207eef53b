// libclc's math functions whose results are wrong for special arguments: zeros of the wrong sign, infinities,
// exponents and products that overflow. The rest of what they do is right and kept: "libclc." names the function that
// is replaced here.
//
// The results are those that OpenCL C asks for in 7.5.1 (and C99's annex F).
#include "common.h"

#define BODY "corrections.inc"
#include "widths.h"
