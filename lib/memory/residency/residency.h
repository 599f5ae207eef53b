// Residency: where the bytes of one storage are. The single source of truth for coherence.
//
// Per byte range: the newest version, the spaces that hold it, and what in flight touches the bytes in which space.
// Parent and sub-buffers share it. The planner reads it; the mutating functions record what has been
// submitted. Invariants: a range with a version above 0 has a holder, a range of version 0 (never
// written, undefined content) has none. Not thread-safe: guarded by the domain's lock.
#pragma once

#include "range_map.h"
#include "timeline.h"

#include <optional>
#include <polder/driver.h>
#include <polder/types.h>
#include <span>

namespace polder::memory {

struct RangeState {
    Version version;
    SpaceSet holders;
    Touches touches;

    // Equal holders and touches make two neighbours one. Versions are only ever compared within one byte, so that
    // the higher one may stand for both; but "never written" stays apart.
    bool absorb(const RangeState& next) {
        if (!(holders == next.holders) || (version.value == 0) != (next.version.value == 0) ||
            !(touches == next.touches))
            return false;
        version = std::max(version, next.version);
        return true;
    }
    // A user's operation writes in `space`. Uses of one command may overlap; the version then grows once.
    void write(SpaceId space, Version next, driver::Timepoint done) {
        version = std::max(version, next);
        holders = SpaceSet{space};
        touches.add(space, TouchKind::user_write, done);
    }
};

class Residency {
public:
    explicit Residency(ByteCount size) : map_(size, RangeState{}) {}

    [[nodiscard]] ByteCount size() const { return map_.size(); }
    [[nodiscard]] size_t pieces() const { return map_.pieces(); }
    // Calls f(ByteRange, const RangeState&) for every piece of `range`, in order.
    template <class F>
    void visit(ByteRange range, F&& f) const {
        map_.visit(range, f);
    }

    // --- what has to be waited for ---
    // By a user's command that uses `range` in `space`: the hidden operations it would collide with. Commands of
    // the user are ordered among themselves by the application.
    void user_waits(ByteRange range, SpaceId space, Access access, WaitList& waits) const;
    // By a hidden operation that reads `range` in `space`: whatever writes there.
    void hidden_read_waits(ByteRange range, SpaceId space, WaitList& waits) const;
    // By a hidden operation that writes `range` in `space`: whatever reads or writes there.
    void hidden_write_waits(ByteRange range, SpaceId space, WaitList& waits) const;
    // By whoever wants the memory in `space` for something else.
    void all_waits(SpaceId space, WaitList& waits) const { hidden_write_waits({0, size().value}, space, waits); }
    // By whoever wants nothing to work on `range` any more, or on the storage.
    void all_waits(ByteRange range, WaitList& waits) const;
    void all_waits(WaitList& waits) const { all_waits({0, size().value}, waits); }

    // All at once for a command in `space` whose bytes are in place: adds its waits and answers the newest version in
    // `range`. Nothing, with some waits added perhaps, when bytes are missing.
    [[nodiscard]] std::optional<Version> use_in_place(ByteRange range, SpaceId space, Access access,
                                                      WaitList& waits) const;

    // --- what has been submitted ---
    // A hidden transfer: `to` holds the newest bytes from `written` on; the source is free from `read` on.
    struct Transferred {
        SpaceId from;
        SpaceId to;
        driver::Timepoint read;
        driver::Timepoint written;
    };
    void commit_transfer(std::span<const ByteRange> ranges, const Transferred& transfer);
    // An operation that reads in `space`.
    void commit_read(std::span<const ByteRange> ranges, SpaceId space, TouchKind kind, driver::Timepoint done);
    // A user's operation that writes in `space`: the bytes become `next`, held there alone.
    void commit_write(std::span<const ByteRange> ranges, SpaceId space, Version next, driver::Timepoint done);
    // The memory in `space` is new to the storage: what still uses it for something else is complete at `after`.
    void begin_in(SpaceId space, driver::Waits after);
    // `space` holds nothing any more. Only when it is the only holder of no range.
    void drop(SpaceId space);

    // The bytes that only `space` holds.
    [[nodiscard]] uint64_t bytes_only_in(SpaceId space) const;
    [[nodiscard]] bool validate() const;

private:
    [[nodiscard]] RangeState* only(std::span<const ByteRange> ranges);
    void sweep_sometimes();

    RangeMap<RangeState> map_;
    size_t sweep_at_ = 64;
};

}  // namespace polder::memory
