// Logarithms for processors with registers of 512 bits, without a division, below 1.4 ulp. builtins.h says when they replace those of
// exp_log.inc.
//
// log(x) = k log(2) - log(c) + log(1 + r), r = c m - 1, for x = 2^k m, 0.979 < m < 1.96. The first bits of m choose one of 16 intervals; the first
// one surrounds 1 and has c = 1. In the other ones c is that double near 1 / m, m in the middle, whose logarithm is next to a multiple of 2^-42
// (by less than 2^-66): the sum of k log(2) and the table's number is exact then, and needs no second number. Each base has its own c.
#include "common.h"
#include "fma.h"
#include "looked_up.h"

__constant const double polder_inverse_of_log[16] = {
    0x1p+0, 0x1.e63d5faf7d95dp-1, 0x1.cafeef7921db6p-1, 0x1.b2a4953715bc2p-1, 0x1.9cbe7379cee9bp-1, 0x1.88f2234115f75p-1,
    0x1.76f5cb01b34c1p-1, 0x1.668c7eec4108ap-1, 0x1.57838b21abf12p-1, 0x1.49b0651b5db4ap-1, 0x1.3cef17df8e341p-1, 0x1.312109d483122p-1,
    0x1.262c0679adc27p-1, 0x1.1bf97ba1ce47dp-1, 0x1.1275dd8174975p-1, 0x1.099028f858553p-1,
};
__constant const double polder_logarithm_of_log[16] = {
    0x0p+0, 0x1.a6e4eab508p-5, 0x1.bfa00762b4p-4, 0x1.4f764b3aaep-3, 0x1.b95698bf5ep-3, 0x1.0f0125495fp-2,
    0x1.3efb25d3f3p-2, 0x1.6ccf5fbcb5p-2, 0x1.98acf0ed8dp-2, 0x1.c2bd28b696p-2, 0x1.eb247173aep-2, 0x1.090187d6a6p-1,
    0x1.1bbaded953p-1, 0x1.2dcb15609fp-1, 0x1.3f3db2c7c4p-1, 0x1.501d1add898p-1,
};
__constant const double polder_inverse_of_log2[16] = {
    0x1p+0, 0x1.e63d5f9de9ddep-1, 0x1.cafeef7596abdp-1, 0x1.b2a495316272ep-1, 0x1.9cbe73644ce36p-1, 0x1.88f223377a469p-1,
    0x1.76f5cb05a1f5dp-1, 0x1.668c7ee1448fcp-1, 0x1.57838b18d7418p-1, 0x1.49b0651304297p-1, 0x1.3cef17dc374f5p-1, 0x1.312109ce899d5p-1,
    0x1.262c0673e256cp-1, 0x1.1bf97ba5efdcap-1, 0x1.1275dd86b09cbp-1, 0x1.099028f58240ap-1,
};
__constant const double polder_logarithm_of_log2[16] = {
    0x0p+0, 0x1.310dbf46acp-4, 0x1.42e4ad1cdcp-3, 0x1.e3f83073fp-3, 0x1.3e5bb79639p-2, 0x1.86fa108536p-2,
    0x1.cc313f4e42p-2, 0x1.0727a2ea93p-1, 0x1.26cc0e879a8p-1, 0x1.4523af1d65p-1, 0x1.6248c94704p-1, 0x1.7e52a3d7c4p-1,
    0x1.9955f7babd8p-1, 0x1.b3654be5aap-1, 0x1.cc9142701c8p-1, 0x1.e4e8d8a80dp-1,
};
__constant const double polder_inverse_of_log10[16] = {
    0x1p+0, 0x1.e63d5fa39c7d7p-1, 0x1.cafeef7c8d04dp-1, 0x1.b2a4952d56f5ep-1, 0x1.9cbe735f08546p-1, 0x1.88f2233e374bfp-1,
    0x1.76f5cb0150716p-1, 0x1.668c7eee806a2p-1, 0x1.57838b1f7f1a9p-1, 0x1.49b065154dd21p-1, 0x1.3cef17e0a2948p-1, 0x1.312109cd77ef4p-1,
    0x1.262c0676157a3p-1, 0x1.1bf97ba811452p-1, 0x1.1275dd7c97feep-1, 0x1.09902905471afp-1,
};
__constant const double polder_logarithm_of_log10[16] = {
    0x0p+0, 0x1.6f523d7efp-6, 0x1.84cd5f06ap-5, 0x1.2360f05b1p-4, 0x1.7f5770367p-4, 0x1.d6c87240f4p-4,
    0x1.15103c0beap-3, 0x1.3cdeb77736p-3, 0x1.62f8984d54p-3, 0x1.8781c015b4p-3, 0x1.aa99cfff02p-3, 0x1.cc5ccf544ep-3,
    0x1.ece3b1a8a8p-3, 0x1.0622631b6bp-2, 0x1.154a0a2ebdp-2, 0x1.23f1d405bcp-2,
};
// Those of floats are next to multiples of 2^-16, by less than 2^-31.
__constant const float polder_inverse_of_float_log[16] = {
    0x1p+0f, 0x1.e4c628p-1f, 0x1.c9e95cp-1f, 0x1.b29d6ep-1f, 0x1.9ca46p-1f, 0x1.88a142p-1f, 0x1.768f02p-1f, 0x1.666678p-1f,
    0x1.57792p-1f, 0x1.49503cp-1f, 0x1.3cbb4p-1f, 0x1.322d66p-1f, 0x1.286d48p-1f, 0x1.1b27ap-1f, 0x1.1286dcp-1f, 0x1.099f42p-1f,
};
__constant const float polder_logarithm_of_float_log[16] = {
    0x0p+0f, 0x1.bfap-5f, 0x1.c95p-4f, 0x1.4f98p-3f, 0x1.b9d8p-3f, 0x1.0fd4p-2f, 0x1.4014p-2f, 0x1.6d3cp-2f,
    0x1.98ccp-2f, 0x1.c3e8p-2f, 0x1.ebccp-2f, 0x1.074p-1f, 0x1.17d2p-1f, 0x1.2f46p-1f, 0x1.3f1ep-1f, 0x1.5p-1f,
};
__constant const float polder_inverse_of_float_log2[16] = {
    0x1p+0f, 0x1.e632a8p-1f, 0x1.cacf34p-1f, 0x1.b29ebap-1f, 0x1.9cc75p-1f, 0x1.886218p-1f, 0x1.7694b2p-1f, 0x1.66baeep-1f,
    0x1.576c52p-1f, 0x1.498c8ep-1f, 0x1.3d0852p-1f, 0x1.3123c8p-1f, 0x1.260f58p-1f, 0x1.1b4a1ep-1f, 0x1.1252acp-1f, 0x1.093984p-1f,
};
__constant const float polder_logarithm_of_float_log2[16] = {
    0x0p+0f, 0x1.319p-4f, 0x1.4418p-3f, 0x1.e42p-3f, 0x1.3e3cp-2f, 0x1.8918p-2f, 0x1.cdbp-2f, 0x1.06c8p-1f,
    0x1.26fep-1f, 0x1.4574p-1f, 0x1.620ep-1f, 0x1.7e4cp-1f, 0x1.999ep-1f, 0x1.b52ep-1f, 0x1.ccfp-1f, 0x1.e5dap-1f,
};
__constant const float polder_inverse_of_float_log10[16] = {
    0x1p+0f, 0x1.e5042p-1f, 0x1.cb04cap-1f, 0x1.b3163ep-1f, 0x1.9cf42ap-1f, 0x1.88db44p-1f, 0x1.76c6bp-1f, 0x1.665b9ep-1f,
    0x1.586284p-1f, 0x1.4a399p-1f, 0x1.3ce73p-1f, 0x1.30f988p-1f, 0x1.26328ap-1f, 0x1.1bf874p-1f, 0x1.11f468p-1f, 0x1.0993a4p-1f,
};
__constant const float polder_logarithm_of_float_log10[16] = {
    0x0p+0f, 0x1.814p-6f, 0x1.84ap-5f, 0x1.219p-4f, 0x1.7e7p-4f, 0x1.d73p-4f, 0x1.158p-3f, 0x1.3d58p-3f,
    0x1.60b8p-3f, 0x1.861p-3f, 0x1.aabp-3f, 0x1.ccdp-3f, 0x1.ecdp-3f, 0x1.0624p-2f, 0x1.161cp-2f, 0x1.23ecp-2f,
};

extern __constant const float polder_roots_of_float[16];
extern __constant const double polder_roots_of_double[16];

#define BODY "log_wide.inc"
#define TABLE(KIND, NAME) polder_##KIND##_of_float_##NAME
#define CORE "float_core.inc"
#include "widths.h"
#undef TABLE
#undef CORE
#define TABLE(KIND, NAME) polder_##KIND##_of_##NAME
#define CORE "double_core.inc"
#include "widths.h"
