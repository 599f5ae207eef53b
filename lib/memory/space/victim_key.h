// VictimKey: the order in which replicas of a full space are evicted. VictimPlan: the victims that the last search has planned.
#pragma once

#include <compare>
#include <cstdint>

namespace polder::memory {

enum class EvictionCost : uint8_t { none, writing_back };

// The replica with the smallest key is evicted first. Replicas without a known next use come first: those that cost nothing, then the least
// recently used ones. Then come replicas with a known next use, the furthest one first, except that recently used ones come last: writing such
// a replica back waits for its last use, and its next use waits for the copies, so that copies in both directions and kernels would not overlap.
struct VictimKey {
    bool has_next_use = false;
    bool is_recent = false;  // used recently; set only when the next use is known
    EvictionCost cost_of_unknown = EvictionCost::none;  // set only when the next use is not known
    uint64_t nearness = 0;  // larger when the next use is nearer
    EvictionCost cost = EvictionCost::none;
    uint64_t last_use = 0;

    auto operator<=>(const VictimKey&) const = default;
};

// The result of a search that later commands use. A search examines all replicas in the space. When there are many, it also plans some of them
// as the next victims (Residents::plan), so that many evictions share the cost of the search. A planned victim is evicted
// if its key is still not above `last`. Guarded by the turn of the space.
struct VictimPlan {
    VictimKey last;
    uint64_t recent_since = 0;  // uses with numbers (Shortage::uses) from here on are recent
    uint64_t ends_at = 0;  // the plan is too old when Shortage::uses has reached this
    // After a compaction of many replicas has found nothing to move, so many requests do not try one.
    uint64_t compactions_skipped = 0;

    // 1/16 of all candidates is planned, and the last uses, as many as 1/16 of the candidates, count as recent.
    static constexpr uint64_t part = 16;
    // With fewer candidates there is no plan: each command searches, which finds the best victims.
    static constexpr uint64_t from = 512;
};

}  // namespace polder::memory
