/* Polder's own extensions to OpenCL. Functions are reached through clGetExtensionFunctionAddressForPlatform. */
#ifndef CL_EXT_POLDER_H
#define CL_EXT_POLDER_H

#include <CL/cl.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * cl_polder_memory_statistics: where a context's bytes are, and which were moved.
 *
 * A memory space is a physically distinct memory, named by a number. Space 0 is the host's memory; devices that
 * compute in host memory share it. Figures are those of the moment of the call, taken without waiting for any
 * queue: call clFinish first for figures that include everything enqueued.
 */
#define cl_polder_memory_statistics 1
#define CL_POLDER_MEMORY_STATISTICS_EXTENSION_NAME "cl_polder_memory_statistics"

/* clGetDeviceInfo: cl_uint, the memory space that the device computes in. */
#define CL_DEVICE_MEMORY_SPACE_POLDER 0x7D00

/* One memory space of a context's devices. The pool's figures count every context that uses the space. */
typedef struct _cl_memory_space_polder {
    cl_uint space;
    cl_uint live_blocks;              /* blocks handed out, one for each buffer that has memory here */
    cl_ulong total_bytes;             /* size of the memory */
    cl_ulong used_bytes;              /* handed out to buffers */
    cl_ulong peak_bytes;              /* the most that was ever handed out at once */
    cl_ulong free_bytes;              /* what further buffers could still get */
    cl_ulong largest_free_bytes;      /* the largest single buffer that would still fit */
} cl_memory_space_polder;

/*
 * The transfers between two memory spaces since the context was made. `needed_bytes` are those that a perfect plan
 * would have moved: bytes that a command was about to read and whose newest version was elsewhere.
 */
typedef struct _cl_memory_transfers_polder {
    cl_uint from_space;
    cl_uint to_space;
    cl_ulong transfers;
    cl_ulong moved_bytes;
    cl_ulong needed_bytes;
} cl_memory_transfers_polder;

/*
 * Both list at most `num_entries` entries, in ascending order of their spaces, and tell in `num_entries_ret` (unless
 * it is NULL) how many there are. `entries` may be NULL when `num_entries` is 0.
 * CL_INVALID_CONTEXT: `context` is not a valid context.
 * CL_INVALID_VALUE: `num_entries` is 0 and `entries` is not NULL, or `entries` is NULL and `num_entries` is not 0, or
 * `entries` and `num_entries_ret` are both NULL.
 */
typedef cl_int(CL_API_CALL* clGetMemorySpacesPOLDER_fn)(cl_context context, cl_uint num_entries,
                                                        cl_memory_space_polder* entries, cl_uint* num_entries_ret);
typedef cl_int(CL_API_CALL* clGetMemoryTransfersPOLDER_fn)(cl_context context, cl_uint num_entries,
                                                           cl_memory_transfers_polder* entries,
                                                           cl_uint* num_entries_ret);

#ifdef __cplusplus
}
#endif

#endif
