// Threads that copy bytes between pageable and pinned memory: one thread is too slow for a link of 50 GB/s.
//
// They are a process-wide pool, started when first needed, which all GPUs and queues share. Any thread.
#pragma once

#include <base/function_ref.h>

#include <cstddef>
#include <cstdint>

namespace polder::cuda {

// How many threads, the caller's included, one copy uses unless POCL_CUDA<i>_PARAMETERS says otherwise.
[[nodiscard]] uint64_t copy_threads();
// Calls `part` up to `threads` times, as many times at once as threads are free, and once by the calling thread at least. Returns when
// all calls have.
void run_on_copy_threads(uint64_t threads, FunctionRef<void()> part);
// memcpy on several threads.
void parallel_copy(std::byte* to, const std::byte* from, uint64_t size);

}  // namespace polder::cuda
