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

// Whether an operation that writes bytes also needs the bytes that earlier transfers copy there. If so, it fails when one of them fails, and has written nothing.
enum class Earlier : uint8_t { superseded, needed };

struct RangeState {
    Version version;
    SpaceSet holders;
    Touches touches;

    // Two neighbours with equal holders and touches become one. Versions of different bytes are never compared, so
    // the higher version may replace both; but bytes that were never written are not joined with written ones.
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
    // Records that a user's operation writes in `space`. Overlapping uses of one command increase the version only once.
    // Afterwards only the spaces `to`, which contain `space`, hold the bytes.
    [[gnu::always_inline]] void write(SpaceId space, SpaceSet to, Version next, driver::Timepoint done,
                                      Earlier earlier) noexcept {
        version = std::max(version, next);
        holders = to;
        if (earlier == Earlier::superseded && touches.has_transfers()) [[unlikely]]
            touches.supersede_transfers();
        touches.add(space, TouchKind::user_write, done);
    }
    // Removes the touches that are complete. The target of a failed transfer stops being a holder. If it is the only holder, because the
    // source's memory was reused since, the bytes are lost: the touch of the transfer stays, so that commands which read the bytes fail.
    void settle() noexcept {
        touches.prune([this](SpaceId target) {
            if (holders == SpaceSet{target})
                return true;
            holders.erase(target);
            return false;
        });
    }
    // Afterwards, `count` touches can be added without allocating memory.
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

    // --- These functions add the timepoints to wait for. An operation that reads bytes whose transfer has failed fails, too ---
    // For a user's command that uses `range` in `space`: the hidden operations that conflict with it. The application orders
    // its commands among themselves.
    void user_waits(ByteRange range, SpaceId space, Access access, WaitList& waits) const;
    // For a hidden operation that reads `range` in `space`: everything that writes there.
    void hidden_read_waits(ByteRange range, SpaceId space, WaitList& waits) const;
    // For a hidden operation that writes `range` in `space`: everything that reads or writes there.
    void hidden_write_waits(ByteRange range, SpaceId space, WaitList& waits) const;
    // For a hidden operation that reads `range` in `from` and writes it in `to`: the sum of the two.
    void transfer_waits(ByteRange range, SpaceId from, SpaceId to, WaitList& waits) const;
    // For the next user of the memory of `range` in `space`, when the memory is reused for something else.
    void all_waits(ByteRange range, SpaceId space, WaitList& waits) const { hidden_write_waits(range, space, waits); }
    // For an operation that needs all work on `range`, or on the whole storage, to be complete.
    void all_waits(ByteRange range, WaitList& waits) const;
    void all_waits(WaitList& waits) const { all_waits({0, size().value}, waits); }
    // True when nothing is in flight. With many pieces, it may return false also then.
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
    // The state of all bytes when there is one piece; null when there are several.
    [[nodiscard]] const RangeState* only() const { return map_.only(); }
    // Returns when everything in flight is complete. Allocates nothing.
    void wait_for_all() const;

    // --- before submission: may throw std::bad_alloc. No byte's version or holders change, except that the target of a
    // failed transfer stops being a holder ---
    // Splits the pieces at the ends of `ranges` and makes room for `touches` commits on each byte.
    void prepare(std::span<const ByteRange> ranges, uint32_t touches);
    // The same for a part of ranges that the command has prepared, which may begin or end within them.
    void prepare_part(std::span<const ByteRange> ranges, uint32_t touches);
    // The same as prepare for a command in `space` whose bytes are expected to be there. Also adds the timepoints to wait for, and
    // returns the newest version in `range`. When bytes are missing, returns std::nullopt, and may have added some timepoints.
    [[nodiscard]] std::optional<Version> prepare_in_place(ByteRange range, SpaceId space, Access access,
                                                          uint32_t touches, WaitList& waits) {
        if (RangeState* const state = map_.only(range)) [[likely]]
            return prepare_piece(*state, space, access, touches, waits) ? std::optional{state->version} : std::nullopt;
        return prepare_pieces_in_place(range, space, access, touches, waits);
    }
    // The same for one operation that reads in `space` and writes elsewhere. False when `space` does not hold all bytes; bytes that were
    // never written count as not held.
    [[nodiscard]] bool prepare_held(ByteRange range, SpaceId space, uint32_t touches, WaitList& waits) {
        if (RangeState* const state = map_.only(range)) [[likely]]
            return prepare_piece(*state, space, Access::read, touches, waits) && state->holders.contains(space);
        return prepare_held_pieces(range, space, touches, waits);
    }

    // --- after submission: on prepared ranges ---
    // A hidden transfer from `from` to `to`. It has written the target when `written` is complete, and has read the source at `read`.
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
    // The application maps the bytes in `space` for writing. Bytes that were never written count as written there from now on, so
    // that no other command gives them contents before the unmap.
    void commit_map_for_writing(std::span<const ByteRange> ranges, SpaceId space, Version next,
                                driver::Timepoint done) noexcept {
        map_.apply(ranges, [&](ByteRange, RangeState& state) {
            if (state.holders.empty())
                state.write(space, holders_after(space), next, done, Earlier::superseded);
            else
                state.touches.add(space, TouchKind::user_read, done);
        });
    }
    // The storage has got memory for `range` in `space`. The operations of the memory's earlier owner are complete at `after`.
    // May throw std::bad_alloc; then nothing has changed.
    void begin_in(ByteRange range, SpaceId space, driver::Waits after) {
        if (!after.empty()) [[unlikely]]
            begin_after(range, space, after);
    }
    // The bytes of `range` have moved within `space`, by an operation that is complete at `done`.
    void commit_moved(ByteRange range, SpaceId space, driver::Timepoint done) noexcept;
    // The shared memory of `range` will belong to `space` when `done` succeeds.
    void commit_owner_change(ByteRange range, SpaceId space, driver::Timepoint done) noexcept;
    // Removes the touches of failed changes of the owner from the prepared `range`, because the change is made again.
    void forget_failed_owner_changes(ByteRange range) noexcept;
    // The spaces that hold bytes which were written in `space`.
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

    // Removes `space` from the holders of the prepared `range`. Every written byte must have another holder.
    void drop(ByteRange range, SpaceId space) noexcept;
    // The replicas of two spaces are one block: from now on, when one of the spaces holds bytes, the other one holds them, too.
    void link(SpaceSet both) noexcept;
    [[nodiscard]] bool validate() const;

private:
    // In the common case a command uses a whole storage that is one piece. It is handled inline.
    [[nodiscard]] RangeState* only(std::span<const ByteRange> ranges) {
        return ranges.size() == 1 ? map_.only(ranges.front()) : nullptr;
    }
    // Prepares one piece. False when its bytes are not in `space`. A user's command waits for hidden touches only.
    [[gnu::always_inline, nodiscard]] static bool prepare_piece(RangeState& state, SpaceId space, Access access,
                                                                uint32_t touches, WaitList& waits) {
        if ((state.touches.kinds() & any_hidden) != 0) [[unlikely]]
            wait_for_hidden(state, space, access, waits);
        state.make_room(touches);
        return has_bytes(state, space, access);
    }
    [[nodiscard]] static bool has_bytes(const RangeState& state, SpaceId space, Access access) {
        return !reads(access) || state.holders.empty() || state.holders.contains(space);
    }
    // Adds nothing when bytes are missing: the command is planned then, and collects what it waits for after its transfers.
    [[gnu::noinline]] static void wait_for_hidden(RangeState& state, SpaceId space, Access access, WaitList& waits) {
        const bool has_transfers = state.touches.has_transfers();
        if (has_transfers)
            state.settle();
        if (!has_bytes(state, space, access))
            return;
        if (has_transfers && reads(access))
            state.touches.collect_needed(space, waits);
        state.touches.collect(space, user_wait_mask(access), waits);
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

    // Small, because splitting a piece moves those after it, and two commands save about as much as a sweep costs.
    static constexpr size_t sweep_at_least = 8;

    RangeMap<RangeState> map_;
    size_t sweep_at_ = sweep_at_least;
    SpaceSet linked_;
};

}  // namespace polder::memory
