// Kernel clocks (cl_khr_kernel_clock) on GPUs. All multiprocessors have one timer in common, which counts nanoseconds in steps of up to a
// microsecond. Each multiprocessor has its own counter of cycles, and a work-group stays on its multiprocessor.
#include "../common.h"

ulong _polder_timer_ns(void);
ulong _polder_cycles(void);

#define DEFINE_CLOCK(SCOPE, READ)                                                                      \
    BUILTIN ulong clock_read_##SCOPE(void) { return READ(); }                                          \
    BUILTIN uint2 clock_read_hilo_##SCOPE(void) {                                                      \
        ulong now = READ();                                                                            \
        return (uint2)((uint)now, (uint)(now >> 32));                                                  \
    }
DEFINE_CLOCK(device, _polder_timer_ns)
DEFINE_CLOCK(work_group, _polder_cycles)
DEFINE_CLOCK(sub_group, _polder_cycles)
