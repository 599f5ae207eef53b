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

/*
 * Version 2: what the allocator of each memory space counts, and memory given back on request.
 *
 * The words are those of PyTorch's memory statistics. "Allocated" is handed out to buffers, with what sizes are rounded up to.
 * "Active" is that and what was released while commands in flight use it. "Reserved" is taken from the device or the system.
 * "Inactive split" is free, but beside blocks in use, so that it cannot be given back.
 */
#define CL_POLDER_MEMORY_STATISTICS_EXTENSION_VERSION CL_MAKE_VERSION(3, 0, 0)

typedef struct _cl_memory_statistics_polder {
    cl_uint space;
    cl_uint regions;                  /* contiguous parts of the memory that are reserved */
    cl_ulong allocated_bytes;
    cl_ulong allocated_peak_bytes;
    cl_ulong active_bytes;
    cl_ulong reserved_bytes;
    cl_ulong reserved_peak_bytes;
    cl_ulong inactive_split_bytes;
    cl_ulong cached_bytes;            /* reserved, in no block */
    cl_ulong largest_cached_bytes;    /* the largest block of them */
    cl_ulong live_blocks;
    cl_ulong pending_blocks;          /* released, while commands in flight use them */
    cl_ulong allocations;             /* since the space was made, as are the following */
    cl_ulong frees;
    cl_ulong hits;                    /* allocations that reserved nothing */
    cl_ulong retries;                 /* allocations that succeeded after memory was given back or waited for */
    cl_ulong out_of_memory;           /* allocations that failed */
} cl_memory_statistics_polder;

/* In place of a memory space: all spaces of the context's devices, and the host's. */
#define CL_MEMORY_SPACE_ALL_POLDER 0xFFFFFFFFu

/* clResetMemoryPeaksPOLDER: which peaks begin again at what is so now. */
typedef cl_bitfield cl_memory_peaks_polder;
#define CL_MEMORY_PEAK_ALLOCATED_POLDER (1 << 0)
#define CL_MEMORY_PEAK_RESERVED_POLDER (1 << 1)

/*
 * clGetMemoryStatisticsPOLDER lists as clGetMemorySpacesPOLDER does, with the same errors.
 * clResetMemoryPeaksPOLDER resets peaks of one space or all of them. CL_INVALID_CONTEXT: `context` is not a valid context.
 * CL_INVALID_VALUE: `space` is neither CL_MEMORY_SPACE_ALL_POLDER nor a space of the context, or `peaks` is 0 or has other
 * bits than the two above.
 * clTrimMemoryPOLDER gives what is reserved and not in use back to the device or the system. It waits for no command.
 * CL_INVALID_CONTEXT and CL_INVALID_VALUE likewise.
 */
typedef cl_int(CL_API_CALL* clGetMemoryStatisticsPOLDER_fn)(cl_context context, cl_uint num_entries,
                                                            cl_memory_statistics_polder* entries,
                                                            cl_uint* num_entries_ret);
typedef cl_int(CL_API_CALL* clResetMemoryPeaksPOLDER_fn)(cl_context context, cl_uint space,
                                                         cl_memory_peaks_polder peaks);
typedef cl_int(CL_API_CALL* clTrimMemoryPOLDER_fn)(cl_context context, cl_uint space);

/*
 * Version 3: what memory is promised, used and left, and what was done for lack of room.
 *
 * "Promised" are the sizes of the context's buffers, each of which may come to need memory in this space. "Committed" is memory that
 * buffers of any context have here. "Resident" is the part of the reserved memory that physical memory backs. "Used by others" is
 * memory that other processes and libraries use, and the application itself.
 */
typedef struct _cl_memory_budget_polder {
    cl_uint space;
    cl_uint unused;                   /* 0 */
    cl_ulong total_bytes;
    cl_ulong limit_bytes;             /* what buffers may have here: control groups, POCL_MEMORY_LIMIT */
    cl_ulong promised_bytes;
    cl_ulong committed_bytes;
    cl_ulong reserved_bytes;
    cl_ulong resident_bytes;
    cl_ulong used_by_others_bytes;
    cl_ulong available_bytes;         /* what further buffers could get */
    cl_ulong compactions;             /* since the space was made, as are the following */
    cl_ulong compacted_bytes;         /* moved within the memory, so that a large buffer has room */
    cl_ulong evicted_bytes;           /* memory that buffers have lost to others */
    cl_ulong written_back_bytes;      /* copied elsewhere before that */
    cl_ulong returned_bytes;          /* evicted, and needed again later */
    cl_ulong maps;                    /* memory that the host and the device share: given to the host, */
    cl_ulong unmaps;                  /* given to the device; without copies */
} cl_memory_budget_polder;

/* Lists as clGetMemorySpacesPOLDER does, with the same errors. */
typedef cl_int(CL_API_CALL* clGetMemoryBudgetsPOLDER_fn)(cl_context context, cl_uint num_entries,
                                                         cl_memory_budget_polder* entries, cl_uint* num_entries_ret);

#ifdef __cplusplus
}
#endif

#endif
