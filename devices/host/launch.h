// Executes one kernel launch: all of its work-groups, on as many threads as make it faster (threads_that_pay).
#pragma once

#include <host/operation.h>
#include <host/worker_pool.h>
#include <polder/result.h>

namespace polder::devices {

// Called by the thread that drains the queue, whose workspace is `workspace`.
[[nodiscard]] Status execute_launch(LaunchRecord& launch, WorkerPool& pool, Workspace& workspace);

// The same without the blocks that the kernel enqueues.
[[nodiscard]] Status execute_kernel(LaunchRecord& launch, WorkerPool& pool, Workspace& workspace);

// Arrays of `work_dim` numbers.
struct LaunchRange {
    uint32_t work_dim;
    const uint64_t* global_offset;
    const uint64_t* global_size;
    const uint64_t* local_size;
};
void set_range(LaunchRecord& launch, const LaunchRange& range);
// Sets the bytes of local memory and of scratch memory for a work-group. Called after set_range.
void set_memory(LaunchRecord& launch, uint64_t local_bytes);

// How many threads finish `group_count` work-groups of `group_ns` nanoseconds (0: unknown) soonest: as many as get enough
// work to be worth waking. Never decreases with more work, and stays the same when `threads_max` increases beyond
// it, so that a small launch takes no longer on a processor with more cores.
[[nodiscard]] uint32_t threads_that_pay(float group_ns, uint64_t group_count, uint32_t threads_max);

// True when a worker should begin at once, before a thread flushes or waits.
[[nodiscard]] bool is_large(const LaunchRecord& launch);

}  // namespace polder::devices
