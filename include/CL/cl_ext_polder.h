/* Polder's own extensions to OpenCL. clGetExtensionFunctionAddressForPlatform returns the functions. Any thread may call them. */
#ifndef CL_EXT_POLDER_H
#define CL_EXT_POLDER_H

#include <CL/cl.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * cl_polder_memory_statistics: how much memory a context's buffers have in each memory, and how many bytes were copied between memories.
 *
 * A memory space is a physically distinct memory, identified by a number. Space 0 is the host's memory; devices that
 * compute in host memory share it. A function returns the values at the moment of its call and waits for no
 * queue: call clFinish first for values that include all enqueued commands. Sizes are in bytes.
 */
#define cl_polder_memory_statistics 1
#define CL_POLDER_MEMORY_STATISTICS_EXTENSION_NAME "cl_polder_memory_statistics"

/* clGetDeviceInfo: cl_uint, the memory space that the device computes in. */
#define CL_DEVICE_MEMORY_SPACE_POLDER 0x7D00

/* One memory space of a context's devices. The pool's figures count every context that uses the space. */
typedef struct _cl_memory_space_polder {
    cl_uint space;
    cl_uint live_blocks; /* allocated blocks: one or more for each buffer with memory here */
    cl_ulong total_bytes; /* size of the memory */
    cl_ulong used_bytes; /* allocated to buffers */
    cl_ulong peak_bytes; /* the maximum of used_bytes so far */
    cl_ulong free_bytes; /* the bytes that further buffers could get in total */
    cl_ulong largest_free_bytes; /* the largest single buffer that would still fit */
} cl_memory_space_polder;

/*
 * The transfers between two memory spaces since the context was created. `needed_bytes`: what a perfect plan would have moved, the bytes
 * that commands read and whose newest version was in another space. Two equal spaces: copies within one memory, needed by no command.
 */
typedef struct _cl_memory_transfers_polder {
    cl_uint from_space;
    cl_uint to_space;
    cl_ulong transfers;
    cl_ulong moved_bytes;
    cl_ulong needed_bytes;
} cl_memory_transfers_polder;

/*
 * Both functions write at most `num_entries` entries to `entries`, in ascending order of their spaces, and the number of all entries to
 * `num_entries_ret`, unless it is NULL. `entries` may be NULL when `num_entries` is 0.
 * CL_INVALID_CONTEXT: `context` is not a valid context.
 * CL_INVALID_VALUE: `num_entries` is 0 and `entries` is not NULL, or `entries` is NULL and `num_entries` is not 0, or
 * `entries` and `num_entries_ret` are both NULL.
 */
typedef cl_int(CL_API_CALL* clGetMemorySpacesPOLDER_fn)(cl_context context, cl_uint num_entries,
                                                        cl_memory_space_polder* entries, cl_uint* num_entries_ret);
typedef cl_int(CL_API_CALL* clGetMemoryTransfersPOLDER_fn)(cl_context context, cl_uint num_entries,
                                                           cl_memory_transfers_polder* entries,
                                                           cl_uint* num_entries_ret);

/*
 * Since version 2: statistics of the allocator of each memory space, and a function that releases unused memory.
 *
 * The terms are those of PyTorch's memory statistics. "Allocated" memory belongs to buffers; their sizes are rounded up. "Active" memory
 * is allocated, or was freed while commands in flight still use it. "Reserved" memory was obtained from the device or the system.
 * "Inactive split" memory is free, but beside blocks in use in one region, so that it cannot be released.
 */
#define CL_POLDER_MEMORY_STATISTICS_EXTENSION_VERSION CL_MAKE_VERSION(3, 0, 0)

typedef struct _cl_memory_statistics_polder {
    cl_uint space;
    cl_uint regions; /* contiguous parts of the memory that are reserved */
    cl_ulong allocated_bytes;
    cl_ulong allocated_peak_bytes;
    cl_ulong active_bytes;
    cl_ulong reserved_bytes;
    cl_ulong reserved_peak_bytes;
    cl_ulong inactive_split_bytes;
    cl_ulong cached_bytes; /* reserved, neither allocated nor pending */
    cl_ulong largest_cached_bytes; /* the largest contiguous part of cached_bytes */
    cl_ulong live_blocks;
    cl_ulong pending_blocks; /* freed, but commands in flight still use them */
    cl_ulong allocations; /* this and the following count from the creation of the space */
    cl_ulong frees;
    cl_ulong hits; /* allocations for which no memory had to be reserved */
    cl_ulong retries; /* allocations that succeeded after memory was released or waited for */
    cl_ulong out_of_memory; /* allocations that failed */
} cl_memory_statistics_polder;

/* In place of a memory space: all spaces of the context's devices, and host memory. */
#define CL_MEMORY_SPACE_ALL_POLDER 0xFFFFFFFFu

/* clResetMemoryPeaksPOLDER: the peaks that are set to the current value. */
typedef cl_bitfield cl_memory_peaks_polder;
#define CL_MEMORY_PEAK_ALLOCATED_POLDER (1 << 0)
#define CL_MEMORY_PEAK_RESERVED_POLDER (1 << 1)

/*
 * clGetMemoryStatisticsPOLDER has the parameters and the errors of clGetMemorySpacesPOLDER.
 * clResetMemoryPeaksPOLDER resets peaks of one space or of all spaces. CL_INVALID_CONTEXT: `context` is not a valid context.
 * CL_INVALID_VALUE: `space` is neither CL_MEMORY_SPACE_ALL_POLDER nor a space of the context, or `peaks` is 0 or has other
 * bits than the two above.
 * clTrimMemoryPOLDER releases reserved memory that is not in use to the device or the system. It waits for no command.
 * CL_INVALID_CONTEXT and CL_INVALID_VALUE: the same conditions on `context` and `space`.
 */
typedef cl_int(CL_API_CALL* clGetMemoryStatisticsPOLDER_fn)(cl_context context, cl_uint num_entries,
                                                            cl_memory_statistics_polder* entries,
                                                            cl_uint* num_entries_ret);
typedef cl_int(CL_API_CALL* clResetMemoryPeaksPOLDER_fn)(cl_context context, cl_uint space,
                                                         cl_memory_peaks_polder peaks);
typedef cl_int(CL_API_CALL* clTrimMemoryPOLDER_fn)(cl_context context, cl_uint space);

/*
 * Since version 3: how much memory is promised, in use and available, and what the library did when a memory was full.
 *
 * "Promised" is the sum of the sizes of the context's buffers, each of which may need memory in this space later. "Committed" memory
 * belongs to buffers of any context in this space. "Resident" is the part of the reserved memory that physical memory backs. "Used by
 * others" is the memory that other processes, other libraries and the application itself use.
 */
typedef struct _cl_memory_budget_polder {
    cl_uint space;
    cl_uint unused; /* 0 */
    cl_ulong total_bytes;
    cl_ulong limit_bytes; /* of buffers here: control groups, POCL_MEMORY_LIMIT */
    cl_ulong promised_bytes;
    cl_ulong committed_bytes;
    cl_ulong reserved_bytes;
    cl_ulong resident_bytes;
    cl_ulong used_by_others_bytes;
    cl_ulong available_bytes; /* the bytes that further buffers could get */
    cl_ulong compactions; /* this and the following count from the creation of the space */
    cl_ulong compacted_bytes; /* moved within this memory, to make contiguous room */
    cl_ulong evicted_bytes; /* memory that was taken from buffers so that others got it */
    cl_ulong written_back_bytes; /* evicted bytes that were copied to another space first */
    cl_ulong returned_bytes; /* memory that evicted buffers got again later */
    cl_ulong maps; /* how often shared memory became the host's, without a copy */
    cl_ulong unmaps; /* how often it became the device's */
} cl_memory_budget_polder;

/* Has the parameters and the errors of clGetMemorySpacesPOLDER. */
typedef cl_int(CL_API_CALL* clGetMemoryBudgetsPOLDER_fn)(cl_context context, cl_uint num_entries,
                                                         cl_memory_budget_polder* entries, cl_uint* num_entries_ret);

#ifdef __cplusplus
}
#endif

#endif
