// Where a work-group's local memory is, on devices that execute on the host.
#pragma once

#include "common.h"

// The field of polder::LaunchContext (kernel_abi.h): bytes of the work-group's local memory.
#define LOCAL_BYTES_OFFSET (12 * sizeof(ulong) + sizeof(uint))

static inline ulong polder_local_bytes(void) {
    return *(const __private uint*)(_polder_launch_context() + LOCAL_BYTES_OFFSET);
}
