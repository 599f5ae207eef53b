// How many bytes cross the links of the devices' memories in a trace, and how few would have had to.
//
// The commands of the trace (launches with their uses, reads and writes of the application) are repeated with memories of the same
// sizes, and with knowledge of all later commands: where room is missing, the bytes whose next use in this memory is furthest go
// (L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", 1966), without a copy when another memory
// holds them or nothing reads them again. For pieces of one size that are only read this is the optimum; with several sizes and with
// bytes that must be written back finding the optimum is hard, and this is a good bound. One thread.
#pragma once

#include "trace_file.h"

#include <optional>
#include <polder/types.h>

namespace polder::trace {

struct MovesOfSpace {
    uint32_t space = 0;
    uint64_t memory_bytes = 0;
    uint64_t used_bytes = 0;  // sum of all ranges that commands use there
    uint64_t launches = 0;
    uint64_t moved_bytes = 0;  // recorded, in both directions
    uint64_t optimum_bytes = 0;

    [[nodiscard]] double ratio() const {
        return optimum_bytes == 0 ? 1 : static_cast<double>(moved_bytes) / static_cast<double>(optimum_bytes);
    }
};

// Of the memories with at least one launch, but the host's. `memory`: of every device, instead of what the trace says.
[[nodiscard]] std::vector<MovesOfSpace> compare_with_optimum(const TraceFile& trace,
                                                             std::optional<ByteCount> memory = std::nullopt);

}  // namespace polder::trace
