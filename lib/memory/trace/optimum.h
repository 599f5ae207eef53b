// Computes how many bytes crossed the links of the devices' memories in a trace, and how many would have been enough.
//
// The commands of the trace (launches with their uses, reads and writes of the application) are simulated with memories of the same
// sizes, and with knowledge of all later commands. When there is no room, the bytes whose next use in this memory is furthest away are evicted
// (L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", 1966), without a copy when another memory
// holds them or no command reads them again. For pieces of one size that are only read, this is the optimum. With several sizes or with
// bytes that must be written back, the optimum is hard to find, and this is an estimate. One thread.
#pragma once

#include "trace_file.h"

#include <optional>
#include <polder/types.h>

namespace polder::trace {

struct MovesOfSpace {
    uint32_t space = 0;
    uint64_t memory_bytes = 0;
    uint64_t used_bytes = 0;  // the size of all ranges that commands use there, each counted once
    uint64_t launches = 0;
    uint64_t moved_bytes = 0;  // as recorded, in both directions
    uint64_t optimum_bytes = 0;

    [[nodiscard]] double ratio() const {
        return optimum_bytes == 0 ? 1 : static_cast<double>(moved_bytes) / static_cast<double>(optimum_bytes);
    }
};

// Compares for all device memories with at least one launch. `memory`: the size of each device's memory, instead of that in the trace.
[[nodiscard]] std::vector<MovesOfSpace> compare_with_optimum(const TraceFile& trace,
                                                             std::optional<ByteCount> memory = std::nullopt);

}  // namespace polder::trace
