// Inverse trigonometric functions, without branches and tables: one division or one square root each. Below 3 ulp.
//
// asin(x) is a polynomial up to 1/2 and pi / 2 - 2 asin(sqrt((1 - x) / 2)) beyond. atan(t), 0 <= t, is one for t <= tan(pi / 8); beyond
// it is pi / 4 + atan((t - 1) / (t + 1)), and from tan(3 pi / 8) on pi / 2 + atan(-1 / t).
#include "common.h"
#include "fma.h"

#define BODY "inverse_trig.inc"
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
#include "widths.h"
