// Threads that copy bytes between pageable and pinned memory: one thread is too slow for a link of 50 GB/s.
//
// They are a process-wide pool, started when first needed, which all GPUs and queues share. Any thread.
#pragma once

#include <base/function_ref.h>

#include <cstddef>
#include <cstdint>

namespace polder::cuda {

// A smaller copy is complete on one thread before another thread is awake.
inline constexpr uint64_t parallel_bytes = uint64_t{512} << 10;

// The default number of threads for one copy, including the calling thread (see POCL_CUDA<i>_PARAMETERS).
[[nodiscard]] uint64_t copy_threads();
// Calls `part` on up to `threads` threads at the same time: on the calling thread, and on as many others as are free. Returns when
// all calls have returned.
void run_on_copy_threads(uint64_t threads, FunctionRef<void()> part);
// memcpy on several threads.
void parallel_copy(std::byte* to, const std::byte* from, uint64_t size);

}  // namespace polder::cuda
