// Replays the allocations of a trace against any policy, without a device.
//
// Time is virtual: a queue's timeline has reached what the trace says, and a request that waits moves it. The same trace
// and options give the same decisions, whatever the machine. Blocks have made-up addresses. One thread.
#pragma once

#include "trace_file.h"

#include <memory/allocation_policy.h>

#include <optional>

namespace polder::trace {

struct ReplayOptions {
    memory::AllocationPolicy policy;
    std::optional<ByteCount> memory;  // of every space; none: what the trace says
    // Whether the source has addresses that get memory part by part, as most drivers do.
    bool growable = true;
};

struct ReplayOfSpace {
    uint32_t space = 0;
    uint64_t memory_bytes = 0;
    uint64_t page_bytes = 0;  // of regions that grow, as recorded; 0: not known
    uint64_t leases = 0;
    uint64_t out_of_memory = 0;
    uint64_t waits = 0;  // of the host, for work in flight
    uint64_t reserves = 0;  // calls to the source
    uint64_t retries = 0;
    uint64_t peak_asked_bytes = 0;  // in use at once, as asked for
    uint64_t peak_allocated_bytes = 0;  // in blocks
    uint64_t peak_reserved_bytes = 0;
    uint64_t ns = 0;  // in the allocator, real time
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

// What the recording process itself did, in the same terms; `ns` and `decisions` are 0.
[[nodiscard]] std::vector<ReplayOfSpace> recorded(const TraceFile& trace);

}  // namespace polder::trace
