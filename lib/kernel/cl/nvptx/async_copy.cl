// Asynchronous copies on a GPU: the work-items of a group share the copy, neighbours copy neighbouring elements.
#include "../common.h"

#define FOR_EACH_ELEMENT(i, count)                                                                     \
    for (size_t i = get_local_linear_id(), n = polder_linear_local_size(); i < count; i += n)
#define COPY_CONTIGUOUS(to, from, count)                                                               \
    FOR_EACH_ELEMENT(i, count)                                                                         \
    to[i] = from[i];

#include "../async_copy_functions.h"

// The work-items share each copy, so each waits for the others.
COLLECTIVE void async_work_group_copy_fence(cl_mem_fence_flags flags) { barrier(flags); }
