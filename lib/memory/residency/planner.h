// The planner: from the uses of a command and the residency, it computes the transfers and the new versions.
// Pure: takes no lock, calls no driver, changes nothing; the caller executes the plan and then commits it.
//
// The plan is minimal: a byte is moved only if the command reads it and its newest version is not in the target,
// and it is moved once, from one holder. Bytes that were never written are not moved.
#pragma once

#include "residency.h"
#include "space/topology.h"

#include <span>

namespace polder::memory {

struct PlannedUse {
    const Residency* residency = nullptr;
    ByteRange range;
    Access access = Access::none;
};

struct PlannedTransfer {
    uint32_t use = 0;  // the first of the uses that need it
    ByteRange range;
    SpaceId from;
};

struct PlannedVersion {
    uint32_t use = 0;
    Version next;  // of all bytes of the use
};

struct Plan {
    SmallVector<PlannedTransfer, 4> transfers;  // to the target; pairwise disjoint
    SmallVector<PlannedVersion, 8> versions;  // of the uses that write
};

[[nodiscard]] Plan plan(std::span<const PlannedUse> uses, SpaceId target, const Topology& topology);

// How many bytes a perfect plan would move from each source space: those that the uses read and that `target` does not hold, each
// counted once. Computed without a plan, so that the ledger can compare the two.
struct NeededBytes {
    SpaceId from;
    uint64_t bytes = 0;
};
[[nodiscard]] SmallVector<NeededBytes, 4> needed_bytes(std::span<const PlannedUse> uses, SpaceId target,
                                                       const Topology& topology);

// The version that the next write gives to all of `range`: higher than any version in it.
[[nodiscard]] Version next_version(const Residency& residency, ByteRange range);
[[nodiscard]] Version next_version(const Residency& residency, std::span<const ByteRange> ranges);

}  // namespace polder::memory
