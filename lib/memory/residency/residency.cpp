// Commits change the state of prepared ranges: a transfer adds a holder, a write makes the target the only holder of a new version.
#include "residency.h"

namespace polder::memory {

void Residency::user_waits(ByteRange range, SpaceId space, Access access, WaitList& waits) const {
    const uint8_t mask = user_wait_mask(access);
    visit(range, [&](ByteRange, const RangeState& state) {
        if (reads(access))
            state.touches.collect_needed(space, waits);
        state.touches.collect(space, mask, waits);
    });
}

void Residency::wait_for_all() const {
    visit({0, size().value}, [&](ByteRange, const RangeState& state) {
        for (const Touch& touch : state.touches.view())
            touch.queue->wait(touch.value);
    });
}

void Residency::prepare(std::span<const ByteRange> ranges, uint32_t touches) {
    map_.prepare(ranges);
    map_.apply(ranges, [&](ByteRange, RangeState& state) {
        if (state.touches.has_transfers())
            state.settle();
        state.make_room(linked_.empty() ? touches : 2 * touches);
    });
}

void Residency::prepare_part(std::span<const ByteRange> ranges, uint32_t touches) {
    map_.prepare(ranges);
    map_.apply(ranges, [&](ByteRange, RangeState& state) { state.make_room(linked_.empty() ? touches : 2 * touches); });
}

std::optional<Version> Residency::prepare_pieces_in_place(ByteRange range, SpaceId space, Access access,
                                                          uint32_t touches, WaitList& waits) {
    bool in_place = true;
    Version newest;
    map_.prepare(range);
    map_.apply(range, [&](ByteRange, RangeState& state) {
        in_place &= prepare_piece(state, space, access, touches, waits);
        newest = std::max(newest, state.version);
    });
    return in_place ? std::optional{newest} : std::nullopt;
}

bool Residency::prepare_held_pieces(ByteRange range, SpaceId space, uint32_t touches, WaitList& waits) {
    bool held = true;
    map_.prepare(range);
    map_.apply(range, [&](ByteRange, RangeState& state) {
        held &= prepare_piece(state, space, Access::read, touches, waits) && state.holders.contains(space);
    });
    return held;
}

void Residency::hidden_read_waits(ByteRange range, SpaceId space, WaitList& waits) const {
    visit(range, [&](ByteRange, const RangeState& state) {
        state.touches.collect_needed(space, waits);
        state.touches.collect(space, any_write, waits);
    });
}

void Residency::hidden_write_waits(ByteRange range, SpaceId space, WaitList& waits) const {
    visit(range, [&](ByteRange, const RangeState& state) { state.touches.collect(space, any_touch, waits); });
}

void Residency::transfer_waits(ByteRange range, SpaceId from, SpaceId to, WaitList& waits) const {
    visit(range, [&](ByteRange, const RangeState& state) {
        for (const Touch& touch : state.touches.view()) {
            const bool writes_source = touch.space == from && (static_cast<uint8_t>(touch.kind) & any_write) != 0;
            if (writes_source && (touch.kind == TouchKind::hidden_write || touch.kind == TouchKind::owner_change))
                waits.need(touch.when());
            else if (writes_source || touch.space == to)
                waits.add(touch.when());
        }
    });
}

void Residency::all_waits(ByteRange range, WaitList& waits) const {
    visit(range, [&](ByteRange, const RangeState& state) {
        for (const Touch& touch : state.touches.view())
            waits.add(touch.when());
    });
}

void Residency::commit_transfer(std::span<const ByteRange> ranges, const Transferred& transfer) noexcept {
    map_.apply(ranges, [&](ByteRange, RangeState& state) {
        assert(state.holders.contains(transfer.from));
        state.holders.bits |= holders_after(transfer.to).bits;
        // Later operations need not wait for touches in the target's space, because the transfer has waited for them.
        state.touches.clear(transfer.to);
        // When two spaces share the replica, both get the touch, because neither holds the bytes when the transfer fails.
        for (SpaceSet rest = holders_after(transfer.to); !rest.empty(); rest.erase(rest.first()))
            state.touches.add(rest.first(), TouchKind::hidden_write, transfer.written);
        state.touches.add(transfer.from, TouchKind::hidden_read, transfer.read);
    });
}

void Residency::commit_broken_transfer(std::span<const ByteRange> ranges, const Transferred& transfer) noexcept {
    map_.apply(ranges, [&](ByteRange, RangeState& state) {
        state.touches.add(transfer.to, TouchKind::hidden_write, transfer.written);
        state.touches.add(transfer.from, TouchKind::hidden_read, transfer.read);
    });
}

void Residency::commit_read_of_pieces(std::span<const ByteRange> ranges, SpaceId space, TouchKind kind,
                                      driver::Timepoint done) noexcept {
    map_.apply(ranges, [&](ByteRange, RangeState& state) { state.touches.add(space, kind, done); });
}

void Residency::commit_write_of_pieces(std::span<const ByteRange> ranges, SpaceId space, Version next,
                                       driver::Timepoint done, Earlier earlier) noexcept {
    map_.apply(ranges,
               [&](ByteRange, RangeState& state) { state.write(space, holders_after(space), next, done, earlier); });
}

void Residency::merge_pieces(std::span<const ByteRange> ranges) noexcept {
    map_.merge(ranges);
    sweep_sometimes();
}

void Residency::begin_after(ByteRange range, SpaceId space, driver::Waits after) {
    prepare({&range, 1}, static_cast<uint32_t>(after.size()));
    map_.apply(range, [&](ByteRange, RangeState& state) {
        for (const driver::Timepoint& point : after)
            state.touches.add(space, TouchKind::earlier, point);
    });
    merge({&range, 1});
}

void Residency::commit_moved(ByteRange range, SpaceId space, driver::Timepoint done) noexcept {
    map_.apply(range, [&](ByteRange, RangeState& state) { state.touches.add(space, TouchKind::hidden_write, done); });
}

void Residency::commit_owner_change(ByteRange range, SpaceId space, driver::Timepoint done) noexcept {
    map_.apply(range, [&](ByteRange, RangeState& state) { state.touches.add(space, TouchKind::owner_change, done); });
}

void Residency::forget_failed_owner_changes(ByteRange range) noexcept {
    map_.apply(range, [](ByteRange, RangeState& state) { state.touches.forget_failed_changes(); });
}

void Residency::drop(ByteRange range, SpaceId space) noexcept {
    map_.apply(range, [&](ByteRange, RangeState& state) {
        assert(!(state.holders == SpaceSet{space}));
        state.holders.erase(space);
    });
}

void Residency::link(SpaceSet both) noexcept {
    linked_ = both;
    map_.sweep([&](ByteRange, RangeState& state) {
        if ((state.holders.bits & both.bits) != 0)
            state.holders.bits |= both.bits;
    });
}

bool Residency::validate() const {
    bool valid = map_.validate();
    visit({0, size().value}, [&](ByteRange, const RangeState& state) {
        valid = valid && (state.version.value == 0) == state.holders.empty();
    });
    return valid;
}

// Old touches keep neighbouring pieces different. So complete touches are removed from all pieces whenever the map has doubled.
void Residency::sweep_sometimes() noexcept {
    if (map_.pieces() < sweep_at_) [[likely]]
        return;
    map_.sweep([](ByteRange, RangeState& state) { state.settle(); });
    sweep_at_ = std::max(sweep_at_least, 2 * map_.pieces());
}

}  // namespace polder::memory
