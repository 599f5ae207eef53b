// Kernel clocks (cl_khr_kernel_clock). All scopes read one counter of the processor, which its cores have in common.
#include "common.h"

#define DEFINE_CLOCK(SCOPE)                                                                            \
    BUILTIN ulong clock_read_##SCOPE(void) { return __builtin_readcyclecounter(); }                    \
    BUILTIN uint2 clock_read_hilo_##SCOPE(void) {                                                      \
        ulong now = __builtin_readcyclecounter();                                                      \
        return (uint2)((uint)now, (uint)(now >> 32));                                                  \
    }
DEFINE_CLOCK(device)
DEFINE_CLOCK(work_group)
DEFINE_CLOCK(sub_group)
