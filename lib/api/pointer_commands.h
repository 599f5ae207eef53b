// The common part of commands with addresses: those of shared virtual memory and of unified shared memory. Their bytes are
// in an allocation (runtime/allocation.h) or in ordinary host memory.
#pragma once

#include "enqueue.h"

namespace polder::api {

// CL_INVALID_VALUE: a pointer is null, or a range extends beyond the end of an allocation. CL_MEM_COPY_OVERLAP: the ranges overlap.
[[nodiscard]] Result<void> enqueue_pointer_copy(const EnqueueCall& call, cl_command_type type, Blocking blocking,
                                                void* to, const void* from, size_t size);
// CL_INVALID_VALUE: `to` is null or not aligned to the pattern, the pattern's size is invalid, `size` is not a multiple of it, the
// range extends beyond the end of an allocation, or it is plain host memory and the device has memory of its own.
[[nodiscard]] Result<void> enqueue_pointer_fill(const EnqueueCall& call, cl_command_type type, void* to,
                                                const void* pattern, size_t pattern_size, size_t size);

}  // namespace polder::api
