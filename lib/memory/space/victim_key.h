// VictimKey: which memory of a full space goes first, and what a space remembers of the last search for it.
#pragma once

#include <compare>
#include <cstdint>

namespace polder::memory {

enum class EvictionCost : uint8_t { none, writing_back };

// The smallest goes first. Those without a known next use first: what costs nothing, then the least recently used ones. Of the others, the
// furthest next use. What was used last goes after those: writing it back would wait for its last use, and the next use for that, so
// that the copies in both directions and the kernels would run one after the other.
struct VictimKey {
    bool has_next_use = false;
    bool is_recent = false;  // only where the next use is known
    EvictionCost cost_of_unknown = EvictionCost::none;  // only where it is not
    uint64_t nearness = 0;  // of the next use
    EvictionCost cost = EvictionCost::none;
    uint64_t last_use = 0;

    auto operator<=>(const VictimKey&) const = default;
};

// What a search for victims leaves to the next commands. A search looks at all memory of the space. Where that is much, it also plans a part of it
// as the next victims (Residents::plan), so that the cost of the search is shared by as many evictions. A planned victim is taken
// if its key is still not above `last`. Guarded by the turn of the space.
struct VictimPlan {
    VictimKey last;
    uint64_t recent_since = 0;  // as Shortage::uses
    uint64_t ends_at = 0;  // likewise: then it is too old
    // A compaction that found nothing to move, among many, is not tried again for so many requests.
    uint64_t compactions_skipped = 0;

    // Of all candidates, so many are planned, and so many were used recently.
    static constexpr uint64_t part = 16;
    // With fewer candidates each command searches anew, which finds the best victims.
    static constexpr uint64_t from = 512;
};

}  // namespace polder::memory
