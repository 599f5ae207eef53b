// Hyperbolic functions and their inverses, without branches and tables. Below 3 ulp.
//
// sinh and tanh are made of h = (e^|x| - 1) / 2, which keeps its accuracy next to 0. The inverses are log(1 + z) of sums that do.
#include "common.h"
#include "fma.h"

#define BODY "hyperbolic.inc"
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
#include "widths.h"
