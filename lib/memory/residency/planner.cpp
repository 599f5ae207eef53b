// For each use that reads, the ranges that the target does not hold become transfers from the best source, except for ranges that an earlier
// use of the command has planned already. Each use that writes gets a next version.
#include "planner.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace polder::memory {
namespace {

// Appends a transfer of `range` for use number `use`, or extends the last transfer when `range` continues it.
void append(Plan& plan, uint32_t use, ByteRange range, SpaceId from) {
    if (!plan.transfers.empty()) {
        PlannedTransfer& last = plan.transfers.back();
        if (last.use == use && last.from == from && last.range.end == range.begin) {
            last.range.end = range.end;
            return;
        }
    }
    plan.transfers.push_back({use, range, from});
}

// Appends the parts of `range` that earlier uses of the same storage have not planned. Compares with the transfers from `index` on.
void append_rest(Plan& plan, std::span<const PlannedUse> uses, uint32_t use, ByteRange range, SpaceId from,
                 uint32_t index = 0) {
    for (; index < plan.transfers.size(); ++index) {
        const PlannedTransfer known = plan.transfers[index];
        if (known.use == use || uses[known.use].residency != uses[use].residency || !known.range.overlaps(range))
            continue;
        if (range.begin < known.range.begin)
            append_rest(plan, uses, use, {range.begin, known.range.begin}, from, index + 1);
        if (known.range.end < range.end)
            append_rest(plan, uses, use, {known.range.end, range.end}, from, index + 1);
        return;
    }
    append(plan, use, range, from);
}

// Whether an earlier use that reads shares bytes with this one.
bool overlaps_earlier(std::span<const PlannedUse> uses, uint32_t use) {
    for (uint32_t i = 0; i < use; ++i)
        if (uses[i].residency == uses[use].residency && reads(uses[i].access) &&
            uses[i].range.overlaps(uses[use].range))
            return true;
    return false;
}

}  // namespace

Plan plan(std::span<const PlannedUse> uses, SpaceId target, const Topology& topology) {
    Plan result;
    for (uint32_t i = 0; i < uses.size(); ++i) {
        const PlannedUse& use = uses[i];
        if (use.access == Access::none)
            continue;
        Version newest;
        bool shares_known = false;
        bool shares = false;
        use.residency->visit(use.range, [&](ByteRange range, const RangeState& state) {
            newest = std::max(newest, state.version);
            if (!reads(use.access) || state.holders.empty() || state.holders.contains(target))
                return;
            if (!shares_known) {
                shares = overlaps_earlier(uses, i);
                shares_known = true;
            }
            const SpaceId from = topology.best_source(state.holders, target);
            if (shares)
                append_rest(result, uses, i, range, from);
            else
                append(result, i, range, from);
        });
        if (writes(use.access))
            result.versions.push_back({i, newest.next()});
    }
    return result;
}

SmallVector<NeededBytes, 4> needed_bytes(std::span<const PlannedUse> uses, SpaceId target, const Topology& topology) {
    struct Stale {
        const Residency* residency;
        ByteRange range;
        SpaceId from;
    };
    SmallVector<Stale, 8> all;
    for (const PlannedUse& use : uses) {
        if (!reads(use.access))
            continue;
        use.residency->visit(use.range, [&](ByteRange range, const RangeState& state) {
            if (!state.holders.empty() && !state.holders.contains(target))
                all.push_back({use.residency, range, topology.best_source(state.holders, target)});
        });
    }
    std::sort(all.begin(), all.end(), [](const Stale& one, const Stale& other) {
        return std::tie(one.residency, one.range.begin) < std::tie(other.residency, other.range.begin);
    });
    SmallVector<NeededBytes, 4> needed;
    const Residency* residency = nullptr;
    uint64_t counted_to = 0;  // the bytes of this residency before this offset have been counted
    for (const Stale& stale : all) {
        if (stale.residency != residency) {
            residency = stale.residency;
            counted_to = 0;
        }
        const uint64_t begin = std::max(counted_to, stale.range.begin);
        if (begin >= stale.range.end)
            continue;
        counted_to = stale.range.end;
        auto entry = std::find_if(needed.begin(), needed.end(),
                                  [&](const NeededBytes& known) { return known.from == stale.from; });
        if (entry == needed.end()) {
            needed.push_back({stale.from, 0});
            entry = needed.end() - 1;
        }
        entry->bytes += stale.range.end - begin;
    }
    return needed;
}

Version next_version(const Residency& residency, ByteRange range) { return next_version(residency, {&range, 1}); }

Version next_version(const Residency& residency, std::span<const ByteRange> ranges) {
    Version newest;
    for (const ByteRange& range : ranges)
        residency.visit(range, [&](ByteRange, const RangeState& state) { newest = std::max(newest, state.version); });
    return newest.next();
}

}  // namespace polder::memory
