// POCL_CUDA<i>_PARAMETERS: "memory=8G,local_memory=48K,copy_threads=8,copy_chunk=2M,copy_chunks=2": how much of the GPU's memory is used, which
// size of local memory is reported, and how pageable memory is copied (staged_copy.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace polder::cuda {

struct Parameters {
    std::optional<uint64_t> memory_bytes;  // the most that is used of the GPU's memory
    std::optional<uint64_t> local_memory_bytes;  // CL_DEVICE_LOCAL_MEM_SIZE
    uint32_t copy_threads = 0;  // the most threads for one copy; 0: the default (copy_threads.h)
    uint64_t copy_chunk_bytes = uint64_t{2} << 20;
    uint32_t copy_chunks = 2;  // how many chunks each thread uses at the same time
};

// Malformed parts are reported as one warning, and their defaults taken.
[[nodiscard]] Parameters parse_parameters(std::string_view text, uint32_t index);

}  // namespace polder::cuda
