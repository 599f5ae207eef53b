// Replays the allocations of a trace against any policy, without a device.
//
// Time is simulated: the trace advances the queues' timelines, and a request that waits advances them, too. The same trace
// and options give the same decisions on every machine. The addresses of blocks are invented. One thread.
#pragma once

#include "trace_file.h"

#include <memory/allocation_policy.h>

#include <optional>

namespace polder::trace {

struct ReplayOptions {
    memory::AllocationPolicy policy;
    std::optional<ByteCount> memory;  // the size of every space; none: the sizes in the trace
    // Whether the source can give addresses memory part by part, as most drivers can.
    bool growable = true;
};

struct ReplayOfSpace {
    uint32_t space = 0;
    uint64_t memory_bytes = 0;
    uint64_t page_bytes = 0;  // the recorded page size of regions that grow; 0: not known
    uint64_t leases = 0;
    uint64_t out_of_memory = 0;
    uint64_t waits = 0;  // how often the host waited for work in flight
    uint64_t reserves = 0;  // how often memory was reserved from the source
    uint64_t retries = 0;
    uint64_t peak_asked_bytes = 0;  // the largest sum of requested sizes in use at once
    uint64_t peak_allocated_bytes = 0;  // the largest sum of sizes of blocks
    uint64_t peak_reserved_bytes = 0;
    uint64_t ns = 0;  // real time in the allocator
    uint64_t operations = 0;  // leases and frees
    uint64_t decisions = 0;  // a hash of all addresses and failures

    [[nodiscard]] double utilisation() const {
        return peak_reserved_bytes == 0
                   ? 0
                   : static_cast<double>(peak_asked_bytes) / static_cast<double>(peak_reserved_bytes);
    }
    [[nodiscard]] double ns_per_operation() const {
        return operations == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(operations);
    }
};

[[nodiscard]] std::vector<ReplayOfSpace> replay(const TraceFile& trace, const ReplayOptions& options);

// The same values for the recording process itself, from the trace; `ns` and `decisions` are 0.
[[nodiscard]] std::vector<ReplayOfSpace> recorded(const TraceFile& trace);

}  // namespace polder::trace
