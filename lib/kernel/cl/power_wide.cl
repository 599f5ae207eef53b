// pow, pown, powr and rootn for processors with registers of 512 bits: as in power.cl, with shorter tables, which the vectorizer looks up in
// registers. builtins.h says when they replace the others. Below 4 ulp where the result is next to the largest or smallest, else below 2.
//
// pow and powr compute what is right for positive numbers x and finite y (pow for negative ones, too). Other arguments have cold functions, which
// lanes call only where there are such arguments; vectors have one form for all.
//
// log2(x) = k + log2(1 + r) - log2(c), r = c m - 1, for x = 2^k m, 1 <= m < 2. Floats: 32 intervals with a c of six bits, -0.0206 < r < 2^-5; they
// keep 2^-30. Doubles: 16 with a c of five bits, -0.0372 < r < 2^-4, the first two powers of r in pairs; they keep 2^-62. The products c m - 1 are exact.
#include "common.h"
#include "fma.h"
#include "looked_up.h"

// About 1 / m for the middle m of an interval: c. The first interval has 1, the last one 1/2, so that numbers on both sides of 1 have an exact c m - 1.
__constant const float polder_inverse_of_float[32] = {
    0x1p+0f, 0x1.e8p-1f, 0x1.d8p-1f, 0x1.dp-1f, 0x1.cp-1f, 0x1.b8p-1f, 0x1.a8p-1f, 0x1.ap-1f,
    0x1.98p-1f, 0x1.88p-1f, 0x1.8p-1f, 0x1.78p-1f, 0x1.7p-1f, 0x1.68p-1f, 0x1.6p-1f, 0x1.58p-1f,
    0x1.5p-1f, 0x1.48p-1f, 0x1.48p-1f, 0x1.4p-1f, 0x1.38p-1f, 0x1.3p-1f, 0x1.3p-1f, 0x1.28p-1f,
    0x1.2p-1f, 0x1.2p-1f, 0x1.18p-1f, 0x1.1p-1f, 0x1.1p-1f, 0x1.08p-1f, 0x1.08p-1f, 0x1p-1f,
};
__constant const double polder_inverse_of_double[16] = {
    0x1p+0, 0x1.dp-1, 0x1.cp-1, 0x1.ap-1, 0x1.9p-1, 0x1.8p-1,
    0x1.7p-1, 0x1.6p-1, 0x1.5p-1, 0x1.4p-1, 0x1.3p-1, 0x1.3p-1,
    0x1.2p-1, 0x1.1p-1, 0x1.1p-1, 0x1p-1,
};
// -log2(c) in two parts, the first a multiple of 2^-16 or 2^-42.
__constant const float polder_log2_high_of_float[32] = {
    0x0p+0f, 0x1.1bbp-4f, 0x1.e0bp-4f, 0x1.22d8p-3f, 0x1.8a88p-3f, 0x1.bfc8p-3f, 0x1.169cp-2f, 0x1.32cp-2f,
    0x1.4f7p-2f, 0x1.8a88p-2f, 0x1.a9p-2f, 0x1.c818p-2f, 0x1.e7ep-2f, 0x1.042cp-1f, 0x1.14c6p-1f, 0x1.25cp-1f,
    0x1.3722p-1f, 0x1.48eep-1f, 0x1.48eep-1f, 0x1.5b2cp-1f, 0x1.6dep-1f, 0x1.811p-1f, 0x1.811p-1f, 0x1.94c2p-1f,
    0x1.a9p-1f, 0x1.a9p-1f, 0x1.bdcep-1f, 0x1.d338p-1f, 0x1.d338p-1f, 0x1.e946p-1f, 0x1.e946p-1f, 0x1p+0f,
};
__constant const float polder_log2_low_of_float[32] = {
    0x0p+0f, 0x1.953002p-19f, 0x1.ae8f3p-20f, 0x1.6e155ap-18f, 0x1.80abfcp-19f, -0x1.858p-19f, 0x1.4d8fc6p-24f, -0x1.1c8f12p-22f,
    -0x1.134c4ep-20f, 0x1.80abfcp-18f, -0x1.a39fbep-20f, 0x1.dc2d46p-18f, -0x1.40358ep-19f, -0x1.5a32c2p-20f, -0x1.3e032ep-18f, 0x1.408c78p-18f,
    0x1.5db83ap-20f, 0x1.e3263p-18f, 0x1.e3263p-18f, 0x1.ed0cbap-20f, -0x1.eac382p-20f, -0x1.6b9026p-19f, -0x1.6b9026p-19f, 0x1.0e9258p-18f,
    -0x1.a39fbep-19f, -0x1.a39fbep-19f, 0x1.3b992cp-18f, 0x1.20a6dep-21f, 0x1.20a6dep-21f, -0x1.a6eb1ep-18f, -0x1.a6eb1ep-18f, 0x0p+0f,
};
__constant const double polder_log2_high_of_double[16] = {
    0x0p+0, 0x1.22dadc2ab4p-3, 0x1.8a8980abfcp-3, 0x1.32bfee370fp-2, 0x1.6cb0f6865dp-2, 0x1.a8ff971811p-2,
    0x1.e7df5fe539p-2, 0x1.14c560fe688p-1, 0x1.37222bb7078p-1, 0x1.5b2c3da197p-1, 0x1.810fa51bf68p-1, 0x1.810fa51bf68p-1,
    0x1.a8ff9718108p-1, 0x1.d338120a6ep-1, 0x1.d338120a6ep-1, 0x1p+0,
};
__constant const double polder_log2_low_of_double[16] = {
    0x0p+0, -0x1.6d25a5b8a19b2p-44, -0x1.66cccab240e9p-46, -0x1.979a5db68721dp-46, -0x1.c57f2495fb7fap-44, -0x1.6879fa00b120ap-44,
    -0x1.532c412ba94dbp-44, 0x1.7c407050799bfp-44, -0x1.c22d2cad415aep-44, 0x1.1d406db502403p-44, -0x1.0144751b3314fp-44, -0x1.0144751b3314fp-44,
    0x1.2f0c0bfe9dbecp-44, -0x1.3167ccc538261p-44, -0x1.3167ccc538261p-44, 0x0p+0,
};
extern __constant const float polder_roots_of_float[16];
extern __constant const double polder_roots_of_double[16];

#define COLD __attribute__((overloadable, noinline, cold))
COLD float polder_pow_of_unusual(float x, float y);
COLD double polder_pow_of_unusual(double x, double y);
COLD float polder_powr_of_unusual(float x, float y);
COLD double polder_powr_of_unusual(double x, double y);

// Functions of a file that are not inlined there have a name of their own in the library.
#define log2_in_pair log2_in_pair_of_wide
#define log2_of_positive log2_of_positive_of_wide
#define exp2_of_pair exp2_of_pair_of_wide
#define power_of_logarithm power_of_logarithm_of_wide
#define part_of_whole part_of_whole_of_wide
#define times_root times_root_of_wide
#define power_with_sign power_with_sign_of_wide
#define times_root_and_power times_root_and_power_of_wide

#define BODY "power_wide.inc"
#define POWER_PARTS "power_parts_wide.inc"
#define POWER(NAME) polder_wide_##NAME
#define GENERAL_POWER(NAME) HELPER R general_##NAME
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
#include "widths.h"

// With y below this size the result is 1 for positive numbers. Products with subnormal ones take long.
#define WITHOUT_TINY(X, Y) (fabs(Y) < 0x1p-80f && (X) > 0 && (X) < INFINITY ? 0 : (Y))
COLD float polder_pow_of_unusual(float x, float y) { return general_pow(x, WITHOUT_TINY(x, y)); }
COLD double polder_pow_of_unusual(double x, double y) { return general_pow(x, WITHOUT_TINY(x, y)); }
COLD float polder_powr_of_unusual(float x, float y) { return general_powr(x, y); }
COLD double polder_powr_of_unusual(double x, double y) { return general_powr(x, y); }
