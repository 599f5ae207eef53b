// Logarithms and logb for processors with registers of 512 bits, without a division, below 1 ulp. builtins.h says when they replace those of
// exp_log.inc.
//
// log(x) = k log(2) - log(c) + log(1 + r), r = c m - 1, for x = 2^k m, 1 <= m < 2. The first bits of m choose one of 16 intervals (floats: 32). The first one
// has c = 1 and the last one 1/2, so that numbers on both sides of 1 have an exact r. In the other ones c is that double near 1 / m, m in the middle, whose
// logarithm is next to a multiple of 2^-42 (by less than 2^-66): the sum of k log(2) and the table's number is exact then, and needs no second number. Each
// base has its own c. The last interval of log and log10 has the first part of log(2), which cancels with that of k = -1, and lacks the second one: -0.0295 < r <= 2^-4.
#include "common.h"
#include "fma.h"
#include "looked_up.h"

__constant const double polder_inverse_of_log[16] = {
    0x1p+0, 0x1.d41d41e3a2985p-1, 0x1.bacf915b9203fp-1, 0x1.a41a4199e3fbcp-1, 0x1.8f9c190735d4dp-1, 0x1.7d05f42006a1ep-1,
    0x1.6c16c17be30fep-1, 0x1.5c9882c597e14p-1, 0x1.4e5e0a6c50f79p-1, 0x1.41414144e51c4p-1, 0x1.3521cfad11d95p-1, 0x1.29e412aa0f57ap-1,
    0x1.1f7047d28a24ep-1, 0x1.15b1e60225c42p-1, 0x1.0c9714f1ae1f5p-1, 0x1p-1,
};
__constant const double polder_logarithm_of_log[16] = {
    0x0p+0, 0x1.6f0d282688p-4, 0x1.29552f3a7cp-3, 0x1.9525aa010ep-3, 0x1.fb918690fp-3, 0x1.2e8e2b98p-2,
    0x1.5d1bdbc912p-2, 0x1.89a33847a6p-2, 0x1.b44f77d111p-2, 0x1.dd46a04082p-2, 0x1.02552a63b78p-1, 0x1.154c3d1b03p-1,
    0x1.2795e13995p-1, 0x1.393e0d216dp-1, 0x1.4a4f85ee5p-1, 0x1.62e42ffp-1,
};
__constant const double polder_inverse_of_log2[16] = {
    0x1p+0, 0x1.d41d41d401f23p-1, 0x1.bacf914deec99p-1, 0x1.a41a419f194e8p-1, 0x1.8f9c18fccc89bp-1, 0x1.7d05f40e0aa3p-1,
    0x1.6c16c169b5e07p-1, 0x1.5c9882b44974p-1, 0x1.4e5e0a7518d8dp-1, 0x1.414141438be16p-1, 0x1.3521cfbdbf2dp-1, 0x1.29e4129dbcf4ep-1,
    0x1.1f7047e0ea737p-1, 0x1.15b1e5f7e36p-1, 0x1.0c9714ff5e433p-1, 0x1p-1,
};
__constant const double polder_logarithm_of_log2[16] = {
    0x0p+0, 0x1.08c588ce54p-3, 0x1.acf5e2cf22p-3, 0x1.24407ac279p-2, 0x1.6e221cce91p-2, 0x1.b47ebf996cp-2,
    0x1.f7a8569657p-2, 0x1.1bf311f3c18p-1, 0x1.3abb3fa53d8p-1, 0x1.5848226445p-1, 0x1.74b1fd4a858p-1, 0x1.900e616148p-1,
    0x1.aa708f4b8d8p-1, 0x1.c3e9ca2c988p-1, 0x1.dc899aaa318p-1, 0x1p+0,
};
__constant const double polder_inverse_of_log10[16] = {
    0x1p+0, 0x1.d41d41d29575p-1, 0x1.bacf914b11d26p-1, 0x1.a41a41a4a5e6fp-1, 0x1.8f9c190489efp-1, 0x1.7d05f41782814p-1,
    0x1.6c16c165be76p-1, 0x1.5c9882b9df742p-1, 0x1.4e5e0a73145e9p-1, 0x1.4141413e95a13p-1, 0x1.3521cfb054262p-1, 0x1.29e4129d12221p-1,
    0x1.1f7047d6338f2p-1, 0x1.15b1e5f94a6c6p-1, 0x1.0c9714fcbdeep-1, 0x1p-1,
};
__constant const double polder_logarithm_of_log10[16] = {
    0x0p+0, 0x1.3ed119a6p-5, 0x1.02428c2334p-4, 0x1.5fe804866p-4, 0x1.b8de4d0ab4p-4, 0x1.06cbd67b22p-3,
    0x1.2f3b692bdap-3, 0x1.55e8c516f4p-3, 0x1.7af973585ap-3, 0x1.9e8e7b1372p-3, 0x1.c0c5134cfp-3, 0x1.e1b733b45p-3,
    0x1.00be05bb2cp-2, 0x1.1014319b3fp-2, 0x1.1ee777e463p-2, 0x1.3441350ap-2,
};
// Those of floats are next to multiples of 2^-16, by less than 2^-31; -0.0171 < r <= 2^-5.
__constant const float polder_inverse_of_float_log[32] = {
    0x1p+0f, 0x1.e92874p-1f, 0x1.db22f8p-1f, 0x1.cd6956p-1f, 0x1.c14468p-1f, 0x1.b5091ep-1f, 0x1.a8ccc2p-1f, 0x1.9f17a4p-1f,
    0x1.94d24ap-1f, 0x1.8a2c32p-1f, 0x1.818612p-1f, 0x1.788a96p-1f, 0x1.6f4d84p-1f, 0x1.676e0cp-1f, 0x1.607bb6p-1f, 0x1.59072ap-1f,
    0x1.51a1ecp-1f, 0x1.4a5c3ap-1f, 0x1.4459f4p-1f, 0x1.3e50d6p-1f, 0x1.38202ap-1f, 0x1.32395cp-1f, 0x1.2c610ap-1f, 0x1.276ddp-1f,
    0x1.21e448p-1f, 0x1.1cf654p-1f, 0x1.1805c4p-1f, 0x1.133806p-1f, 0x1.0ee81p-1f, 0x1.0a7022p-1f, 0x1.064052p-1f, 0x1p-1f,
};
__constant const float polder_logarithm_of_float_log[32] = {
    0x0p+0f, 0x1.75ep-5f, 0x1.321p-4f, 0x1.aa2p-4f, 0x1.0bbp-3f, 0x1.4438p-3f, 0x1.7e6p-3f, 0x1.adb8p-3f,
    0x1.e108p-3f, 0x1.0bdp-2f, 0x1.2288p-2f, 0x1.3aacp-2f, 0x1.541cp-2f, 0x1.6a4cp-2f, 0x1.7e48p-2f, 0x1.942cp-2f,
    0x1.aa5cp-2f, 0x1.c0a8p-2f, 0x1.d374p-2f, 0x1.e6bp-2f, 0x1.faccp-2f, 0x1.072cp-1f, 0x1.110ap-1f, 0x1.198cp-1f,
    0x1.233cp-1f, 0x1.2c04p-1f, 0x1.34f8p-1f, 0x1.3dd4p-1f, 0x1.45eap-1f, 0x1.4e6ep-1f, 0x1.568ap-1f, 0x1.63p-1f,
};
__constant const float polder_inverse_of_float_log2[32] = {
    0x1p+0f, 0x1.e9234ap-1f, 0x1.db0f84p-1f, 0x1.cd9e3p-1f, 0x1.c0ceap-1f, 0x1.b4dd4cp-1f, 0x1.a8bc72p-1f, 0x1.9eb558p-1f,
    0x1.94c47cp-1f, 0x1.8a615ap-1f, 0x1.819744p-1f, 0x1.789b58p-1f, 0x1.6fe4f2p-1f, 0x1.67dbdcp-1f, 0x1.608076p-1f, 0x1.58a282p-1f,
    0x1.51eaecp-1f, 0x1.4b0176p-1f, 0x1.446c7ep-1f, 0x1.3f1f24p-1f, 0x1.386ea4p-1f, 0x1.3266aap-1f, 0x1.2cdbbep-1f, 0x1.2740e8p-1f,
    0x1.21a49p-1f, 0x1.1cf388p-1f, 0x1.17c218p-1f, 0x1.13d836p-1f, 0x1.0ec932p-1f, 0x1.0a763ap-1f, 0x1.061eeep-1f, 0x1p-1f,
};
__constant const float polder_logarithm_of_float_log2[32] = {
    0x0p+0f, 0x1.0dfp-4f, 0x1.ba8p-4f, 0x1.321p-3f, 0x1.8538p-3f, 0x1.d4e8p-3f, 0x1.140cp-2f, 0x1.3758p-2f,
    0x1.5b3p-2f, 0x1.8198p-2f, 0x1.a2e4p-2f, 0x1.c5b8p-2f, 0x1.e84cp-2f, 0x1.0476p-1f, 0x1.13b8p-1f, 0x1.2464p-1f,
    0x1.32eep-1f, 0x1.4232p-1f, 0x1.5108p-1f, 0x1.5d34p-1f, 0x1.6cdap-1f, 0x1.7b4p-1f, 0x1.88bcp-1f, 0x1.96ap-1f,
    0x1.a4ccp-1f, 0x1.b0dcp-1f, 0x1.be72p-1f, 0x1.c8dap-1f, 0x1.d686p-1f, 0x1.e26ap-1f, 0x1.ee8cp-1f, 0x1p+0f,
};
__constant const float polder_inverse_of_float_log10[32] = {
    0x1p+0f, 0x1.e92cbep-1f, 0x1.daee96p-1f, 0x1.cd124cp-1f, 0x1.c046c8p-1f, 0x1.b5085ap-1f, 0x1.a9c1acp-1f, 0x1.9ec1bep-1f,
    0x1.947eecp-1f, 0x1.8aeeb2p-1f, 0x1.81374ap-1f, 0x1.7873cp-1f, 0x1.6fc57ap-1f, 0x1.681644p-1f, 0x1.605a44p-1f, 0x1.5900a2p-1f,
    0x1.51a0bp-1f, 0x1.4b0fbp-1f, 0x1.44394p-1f, 0x1.3e04bap-1f, 0x1.3880a2p-1f, 0x1.3211d4p-1f, 0x1.2cd306p-1f, 0x1.27463ep-1f,
    0x1.2207d4p-1f, 0x1.1cfd72p-1f, 0x1.17f7dcp-1f, 0x1.135d16p-1f, 0x1.0ebd58p-1f, 0x1.0a2a4cp-1f, 0x1.053576p-1f, 0x1p-1f,
};
__constant const float polder_logarithm_of_float_log10[32] = {
    0x0p+0f, 0x1.448p-6f, 0x1.0b6p-5f, 0x1.74cp-5f, 0x1.d8ep-5f, 0x1.19ap-4f, 0x1.482p-4f, 0x1.76bp-4f,
    0x1.a34p-4f, 0x1.cddp-4f, 0x1.fa2p-4f, 0x1.1188p-3f, 0x1.2648p-3f, 0x1.391p-3f, 0x1.4c6p-3f, 0x1.5f2p-3f,
    0x1.7258p-3f, 0x1.83dp-3f, 0x1.966p-3f, 0x1.a79p-3f, 0x1.b72p-3f, 0x1.c9ap-3f, 0x1.d9p-3f, 0x1.e99p-3f,
    0x1.f98p-3f, 0x1.048cp-2f, 0x1.0c74p-2f, 0x1.13d4p-2f, 0x1.1b5cp-2f, 0x1.22fp-2f, 0x1.2b4cp-2f, 0x1.344p-2f,
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
