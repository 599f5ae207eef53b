// Asynchronous copies on the host: the first work-item copies everything at once, because one thread executes all work-items.
#include "common.h"

#define COPY_CONTIGUOUS(to, from, count)                                                               \
    if (get_local_linear_id() == 0)                                                                    \
        __builtin_memcpy(to, from, count * sizeof(*to));
#define FOR_EACH_ELEMENT(i, count)                                                                     \
    if (get_local_linear_id() == 0)                                                                    \
        for (size_t i = 0; i < count; ++i)

#include "async_copy_functions.h"

// One work-item makes all copies, in order, so there is nothing to wait for.
COLLECTIVE void async_work_group_copy_fence(cl_mem_fence_flags flags) {}
