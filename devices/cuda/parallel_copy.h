// memcpy on several threads, for bytes between pageable and pinned memory: one thread is too slow for a link of 50 GB/s.
//
// The threads are a process-wide pool, started when first needed. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polder::cuda {

void parallel_copy(std::byte* to, const std::byte* from, uint64_t size);

}  // namespace polder::cuda
