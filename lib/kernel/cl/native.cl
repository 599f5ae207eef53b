// native_* and half_*: without what only the full functions' bounds and special arguments need. libclc's native_* are LLVM
// intrinsics, which become calls of the C library's scalar functions on the host, and its half_* keep older bodies.
#include "common.h"
#include "fma.h"

#define BODY "native.inc"
#include "widths.h"
