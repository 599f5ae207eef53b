// Exponentials for processors with registers of 512 bits, below 1.5 ulp: 2^k 2^(j / 16) e^r with the roots of 2 in a table of 16 numbers, so
// that the polynomial of e^r is half as long as that of exp_log.inc. builtins.h says when they replace the others.
#include "common.h"
#include "fma.h"
#include "looked_up.h"

__constant const float polder_roots_of_float[16] = {
    0x1p+0f,        0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fep+0f,  0x1.3dea64p+0f, 0x1.4bfdaep+0f, 0x1.5ab07ep+0f,
    0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f, 0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f,
};
__constant const double polder_roots_of_double[16] = {
    0x1p+0,               0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0, 0x1.306fe0a31b715p+0, 0x1.3dea64c123422p+0,
    0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0, 0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0, 0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f09p+0,
    0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0, 0x1.ea4afa2a490dap+0,
};

#define BODY "exp_wide.inc"
#define CORE "float_core.inc"
#include "widths.h"
#undef CORE
#define CORE "double_core.inc"
#include "widths.h"
