// Residency: which memory spaces hold the bytes of one storage. All decisions about coherence are made from it.
//
// For each byte range: the newest version, the spaces that hold it, and the commands in flight that use the bytes in each space.
// Parent and sub-buffers share it. The planner reads it. A command changes it in three steps: it prepares the ranges it
// uses (which may run out of memory), submits its operations, and commits them (which cannot fail).
// Invariants: a range with a version above 0 has a holder; a range of version 0 (never written, undefined content) has
// none. Not thread-safe: guarded by the storage's lock (storage_guard.h).
#pragma once

#include "range_map.h"
#include "touches.h"

#include <optional>
#include <polder/driver.h>
#include <polder/types.h>
#include <span>

namespace polder::memory {

// Whether an operation that writes needs the bytes that earlier transfers bring. If one of them fails, the operation fails, and has written nothing.
enum class Earlier : uint8_t { superseded, needed };

struct RangeState {
    Version version;
    SpaceSet holders;
    Touches touches;

    // Equal holders and touches in flight make two neighbours one. Versions are only ever compared within one byte, so that
    // the higher one may replace both; but "never written" stays apart.
    bool absorb(RangeState& next) {
        if (!(touches == next.touches)) {
            settle();
            next.settle();
        }
        if (!(holders == next.holders) || (version.value == 0) != (next.version.value == 0) ||
            !(touches == next.touches))
            return false;
        version = std::max(version, next.version);
        return true;
    }
    // A user's operation writes in `space`. Uses of one command may overlap; the version then grows once.
    // Afterwards only `to` holds it, which contains `space`.
    void write(SpaceId space, SpaceSet to, Version next, driver::Timepoint done, Earlier earlier) noexcept {
        version = std::max(version, next);
        holders = to;
        if (touches.has_transfers() && earlier == Earlier::superseded) [[unlikely]]
            touches.supersede_transfers();
        touches.add(space, TouchKind::user_write, done);
    }
    // Forgets the touches that are complete. The target of a failed transfer is no holder. Where it is the only one, because the source's
    // memory was used for something else since, the bytes are lost: the transfer is kept, so that commands which read them fail.
    void settle() noexcept {
        touches.prune([this](SpaceId target) {
            if (holders == SpaceSet{target})
                return true;
            holders.erase(target);
            return false;
        });
    }
    // Afterwards `count` touches can be added without allocating.
    void make_room(uint32_t count) {
        if (touches.has_room(count)) [[likely]]
            return;
        settle();
        touches.make_room(count);
    }
};

class Residency {
public:
    explicit Residency(ByteCount size) : map_(size) {}

    [[nodiscard]] ByteCount size() const { return map_.size(); }
    [[nodiscard]] size_t pieces() const { return map_.pieces(); }
    // Calls f(ByteRange, const RangeState&) for every piece of `range`, in order.
    template <class F>
    void visit(ByteRange range, F&& f) const {
        map_.visit(range, f);
    }

    // --- what has to be waited for. Who reads bytes that a failed transfer should have brought fails as well ---
    // By a user's command that uses `range` in `space`: the hidden operations it would collide with. Commands of
    // the user are ordered among themselves by the application.
    void user_waits(ByteRange range, SpaceId space, Access access, WaitList& waits) const;
    // By a hidden operation that reads `range` in `space`: whatever writes there.
    void hidden_read_waits(ByteRange range, SpaceId space, WaitList& waits) const;
    // By a hidden operation that writes `range` in `space`: whatever reads or writes there.
    void hidden_write_waits(ByteRange range, SpaceId space, WaitList& waits) const;
    // By a command that reuses the memory of `range` in `space` for something else.
    void all_waits(ByteRange range, SpaceId space, WaitList& waits) const { hidden_write_waits(range, space, waits); }
    // By a command that needs all work on `range`, or on the storage, to be complete.
    void all_waits(ByteRange range, WaitList& waits) const;
    void all_waits(WaitList& waits) const { all_waits({0, size().value}, waits); }
    // True when nothing is in flight; false perhaps also then, where there are many pieces.
    [[nodiscard]] bool is_idle() const {
        if (map_.pieces() > pieces_looked_at)
            return false;
        bool idle = true;
        map_.visit({0, size().value}, [&](ByteRange, const RangeState& state) {
            for (const Touch& touch : state.touches.view())
                idle = idle && touch.when().is_complete();
        });
        return idle;
    }
    // Returns when everything in flight is complete. Allocates nothing.
    void wait_for_all() const;

    // --- before submission: may throw std::bad_alloc; no byte's version or holders change, except that the target of a
    // failed transfer is a holder no more ---
    // Splits the pieces at the ends of `ranges` and makes room for `touches` commits on each byte.
    void prepare(std::span<const ByteRange> ranges, uint32_t touches);
    // The same for a command in `space` whose bytes are expected to be there: also adds what it must wait for, and
    // returns the newest version in `range`; nothing, with some waits perhaps added, when bytes are missing.
    [[nodiscard]] std::optional<Version> prepare_in_place(ByteRange range, SpaceId space, Access access,
                                                          uint32_t touches, WaitList& waits) {
        if (RangeState* const state = map_.only(range)) [[likely]]
            return prepare_piece(*state, space, access, touches, waits) ? std::optional{state->version} : std::nullopt;
        return prepare_pieces_in_place(range, space, access, touches, waits);
    }
    // The same for a command that reads in `space` and writes elsewhere, in one operation: false when `space` does not hold all bytes,
    // those that were never written included.
    [[nodiscard]] bool prepare_held(ByteRange range, SpaceId space, uint32_t touches, WaitList& waits) {
        if (RangeState* const state = map_.only(range)) [[likely]]
            return prepare_piece(*state, space, Access::read, touches, waits) && state->holders.contains(space);
        return prepare_held_pieces(range, space, touches, waits);
    }

    // --- after submission: on prepared ranges ---
    // A hidden transfer: `to` holds the newest bytes from `written` on; the source is free from `read` on.
    struct Transferred {
        SpaceId from;
        SpaceId to;
        driver::Timepoint read;
        driver::Timepoint written;
    };
    void commit_transfer(std::span<const ByteRange> ranges, const Transferred& transfer) noexcept;
    // A transfer of which only a part was submitted: `to` does not hold the bytes.
    void commit_broken_transfer(std::span<const ByteRange> ranges, const Transferred& transfer) noexcept;
    // An operation that reads in `space`.
    void commit_read(std::span<const ByteRange> ranges, SpaceId space, TouchKind kind,
                     driver::Timepoint done) noexcept {
        if (RangeState* const state = only(ranges)) [[likely]]
            state->touches.add(space, kind, done);
        else
            commit_read_of_pieces(ranges, space, kind, done);
    }
    // A user's operation that writes in `space`: the bytes become `next`, held there alone.
    void commit_write(std::span<const ByteRange> ranges, SpaceId space, Version next, driver::Timepoint done,
                      Earlier earlier = Earlier::superseded) noexcept {
        if (RangeState* const state = only(ranges)) [[likely]]
            state->write(space, holders_after(space), next, done, earlier);
        else
            commit_write_of_pieces(ranges, space, next, done, earlier);
    }
    // The application gets the bytes in `space` to change them. What was never written is new from now on and held there alone, so
    // that no other command gives those bytes contents before the unmap.
    void commit_map_for_writing(std::span<const ByteRange> ranges, SpaceId space, Version next,
                                driver::Timepoint done) noexcept {
        map_.apply(ranges, [&](ByteRange, RangeState& state) {
            if (state.holders.empty())
                state.write(space, holders_after(space), next, done, Earlier::superseded);
            else
                state.touches.add(space, TouchKind::user_read, done);
        });
    }
    // The memory of `range` in `space` is new to the storage: what still uses it for something else is complete at `after`.
    // May throw std::bad_alloc; then nothing has changed.
    void begin_in(ByteRange range, SpaceId space, driver::Waits after) {
        if (!after.empty()) [[unlikely]]
            begin_after(range, space, after);
    }
    // The bytes of `range` have moved within `space`, by an operation that is complete at `done`.
    void commit_moved(ByteRange range, SpaceId space, driver::Timepoint done) noexcept;
    // The shared memory of `range` belongs to `space` when `done` has succeeded.
    void commit_owner_change(ByteRange range, SpaceId space, driver::Timepoint done) noexcept;
    // Those that have failed, of the prepared `range`: another one is made in their place.
    void forget_failed_owner_changes(ByteRange range) noexcept;
    // Who holds bytes that were written in `space`.
    [[nodiscard]] SpaceSet holders_after(SpaceId space) const {
        return linked_.contains(space) ? linked_ : SpaceSet{space};
    }
    // False when merge has nothing to do.
    [[nodiscard]] bool is_split() const { return map_.is_split(); }
    // Merges equal neighbours around `ranges`, after the last commit of a command.
    void merge(std::span<const ByteRange> ranges) noexcept {
        if (map_.is_split()) [[unlikely]]
            merge_pieces(ranges);
    }

    // `space` holds nothing of the prepared `range` any more. Only when it is the only holder of no part of it.
    void drop(ByteRange range, SpaceId space) noexcept;
    // Two spaces whose replicas are one block: from now on both hold what one of them holds.
    void link(SpaceSet both) noexcept;
    [[nodiscard]] bool validate() const;

private:
    // A command that uses a whole storage of one piece is the common case, and is decided inline.
    [[nodiscard]] RangeState* only(std::span<const ByteRange> ranges) {
        return ranges.size() == 1 ? map_.only(ranges.front()) : nullptr;
    }
    // For one piece; false when bytes are missing.
    [[nodiscard]] static bool prepare_piece(RangeState& state, SpaceId space, Access access, uint32_t touches,
                                            WaitList& waits) {
        if (!state.touches.empty()) {
            if (state.touches.has_transfers()) [[unlikely]] {
                state.settle();
                if (reads(access))
                    state.touches.collect_needed(space, waits);
            }
            state.touches.collect(space, user_wait_mask(access), waits);
            state.make_room(touches);
        }
        return !reads(access) || state.holders.empty() || state.holders.contains(space);
    }
    // The touches that a user's command has to wait for.
    [[nodiscard]] static constexpr uint8_t user_wait_mask(Access access) {
        if (writes(access))
            return any_hidden;
        return reads(access) ? any_hidden_write : 0;
    }
    [[nodiscard]] std::optional<Version> prepare_pieces_in_place(ByteRange range, SpaceId space, Access access,
                                                                 uint32_t touches, WaitList& waits);
    [[nodiscard]] bool prepare_held_pieces(ByteRange range, SpaceId space, uint32_t touches, WaitList& waits);
    void commit_read_of_pieces(std::span<const ByteRange> ranges, SpaceId space, TouchKind kind,
                               driver::Timepoint done) noexcept;
    void commit_write_of_pieces(std::span<const ByteRange> ranges, SpaceId space, Version next, driver::Timepoint done,
                                Earlier earlier) noexcept;
    void merge_pieces(std::span<const ByteRange> ranges) noexcept;
    void begin_after(ByteRange range, SpaceId space, driver::Waits after);
    void sweep_sometimes() noexcept;

    static constexpr size_t pieces_looked_at = 8;

    // Few, because each piece is moved when one before it is split, and a sweep costs about as much as it saves two commands.
    static constexpr size_t sweep_at_least = 8;

    RangeMap<RangeState> map_;
    size_t sweep_at_ = sweep_at_least;
    SpaceSet linked_;
};

}  // namespace polder::memory
