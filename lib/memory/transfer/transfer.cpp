// Mover::hidden submits one copy on a hidden queue by the route of topology.h. A staged copy is divided into chunks, each copied to a slot
// by the source's queue and from there by the target's queue.
#include "transfer.h"

#include "rect.h"

#include <base/log.h>

#include <polder/driver.h>
#include <utility>
#include <vector>

namespace polder::memory {
namespace {

driver::CopyOperation::End end_of(const Place& place) {
    using Where = driver::CopyOperation::Place;
    return {is_host_memory(place.space) ? Where::host : Where::device, place.address, place.layout};
}

driver::CopyOperation operation_of(const Move& move) { return {end_of(move.from), end_of(move.to), move.shape}; }

// True when source and target are the same memory: an application may read a buffer into its CL_MEM_USE_HOST_PTR memory, or write from it.
bool is_in_place(const Move& move) {
    const driver::RectLayout &from = move.from.layout, &to = move.to.layout;
    return is_host_memory(move.from.space) && is_host_memory(move.to.space) && move.from.address == move.to.address &&
           (move.shape.rows == 1 || from.row_pitch == to.row_pitch) &&
           (move.shape.slices == 1 || from.slice_pitch == to.slice_pitch);
}

driver::Timepoint copy_on(driver::Queue& queue, const Move& move, const driver::Submission& submission) {
    return is_in_place(move) ? queue.marker(submission) : queue.copy(operation_of(move), submission);
}

Place moved_by(const Place& place, uint64_t x, uint64_t y, uint64_t z) {
    return {place.space, place.address.plus(x + row_offset(place.layout, y, z)), place.layout};
}

}  // namespace

Mover::Mover(std::span<Space* const> spaces) {
    for (Space* space : spaces)
        spaces_[space->id().value] = static_cast<SpaceImpl*>(space);
    staging_.emplace(spaces_[host_space.value] ? &spaces_[host_space.value]->pool() : nullptr);
    for (const SpaceImpl* reader : spaces_) {
        driver::PeerCopy* const peer_copy = reader && reader->device() ? reader->device()->peer_copy() : nullptr;
        if (!peer_copy)
            continue;
        for (const SpaceImpl* other : spaces_)
            if (other && other->device() && other != reader)
                if (const auto link = peer_copy->link(other->id()))
                    topology_.add_peer(reader->id(), other->id(), *link);
    }
}

void Mover::note_host_copy(const Place& from, const Place& to, const driver::RectShape& shape) const noexcept {
    if (is_host_memory(from.space) == is_host_memory(to.space))
        return;
    const auto& [host, device] = is_host_memory(from.space) ? std::pair{from, to} : std::pair{to, from};
    AdaptivePins* const pins = spaces_[host_space.value] ? spaces_[host_space.value]->adaptive_pins() : nullptr;
    if (!pins || !pins->has_devices() || !space(device.space)->device()->host_regions())
        return;
    const uint64_t span =
        (shape.slices - 1) * host.layout.slice_pitch + (shape.rows - 1) * host.layout.row_pitch + shape.row_bytes;
    const bool is_short = space(device.space)->shortage().has_returned();
    pins->note_copy({host.address, span}, shape.row_bytes * shape.rows * shape.slices,
                    is_short ? AdaptivePins::times_when_short : 1);
}

driver::Timepoint Mover::direct(Route route, driver::Queue& queue, const Move& move,
                                const driver::Submission& submission) const {
    note_host_copy(move.from, move.to, move.shape);
    if (route != Route::peer)
        return copy_on(queue, move, submission);
    return space(move.to.space)->device()->peer_copy()->copy(queue, move.from.space, operation_of(move), submission);
}

driver::Timepoint Mover::from_host(driver::Queue& queue, const Move& move, const driver::Submission& submission) const {
    note_host_copy(move.from, move.to, move.shape);
    return copy_on(queue, move, submission);
}

driver::Timepoint Mover::within(driver::Queue& queue, const Move& move, const driver::Submission& submission) {
    return copy_on(queue, move, submission);
}

Result<void> Mover::hidden(const Move& move, const WaitList& before_read, const WaitList& before_write,
                           StagingSlots* slots, Moved& moved) {
    const Route route = topology_.route(move.from.space, move.to.space);
    WaitList all;
    all.add(before_write.view());
    all.add_all(before_read);
    if (route == Route::staged) {
        POLDER_ASSIGN(out, space(move.from.space)->transfers_out().lease(all.view(), slots ? slots->out : nullptr));
        POLDER_ASSIGN(in, space(move.to.space)->transfers_in().lease(all.view(), slots ? slots->in : nullptr));
        if (slots) {
            slots->out = &out.queue();
            slots->in = &in.queue();
        }
        return staged(move, before_read, {out, in.queue(), &in}, {before_write.view()}, slots, moved);
    }
    return hidden_direct(route, move, all.view(), moved);
}

Result<void> Mover::hidden_direct(Route route, const Move& move, driver::Waits before, Moved& moved) {
    HiddenQueues& queues = route == Route::download ? space(move.from.space)->transfers_out()
                           : route == Route::within && is_host_memory(move.to.space)
                               ? space(host_space)->transfers_in()
                               : space(move.to.space)->transfers_in();
    POLDER_ASSIGN(lease, queues.lease(before));
    moved.read = moved.written = direct(route, lease.queue(), move, {before});
    lease.submitted(moved.written);
    return {};
}

Result<driver::Timepoint> Mover::hidden_peer_copies(std::span<const Move> moves, driver::Waits before) {
    const SpaceId from = moves.front().from.space;
    const SpaceId to = moves.front().to.space;
    std::vector<driver::CopyOperation> operations;
    operations.reserve(moves.size());
    for (const Move& move : moves)
        operations.push_back(operation_of(move));
    POLDER_ASSIGN(lease, space(to)->transfers_in().lease(before));
    const driver::Timepoint done =
        space(to)->device()->peer_copy()->copy_all(lease.queue(), from, operations, {before});
    lease.submitted(done);
    return done;
}

Result<void> Mover::on_queue(driver::Queue& queue, const Move& move, const WaitList& before_read,
                             const driver::Submission& submission, StagingSlots* slots, Moved& moved) {
    const Route route = topology_.route(move.from.space, move.to.space);
    if (route == Route::staged) {
        WaitList first;
        first.add_all(before_read);  // the choice of the queue depends on these timepoints
        POLDER_ASSIGN(out, space(move.from.space)->transfers_out().lease(first.view(), slots ? slots->out : nullptr));
        if (slots)
            slots->out = &out.queue();
        return staged(move, before_read, {out, queue, nullptr}, submission, slots, moved);
    }
    WaitList waits{&queue};
    waits.require(submission.waits);
    waits.add_all(before_read);
    const driver::Submission all{waits.view(), submission.times};
    moved.read = moved.written = direct(route, queue, move, all);
    return {};
}

// The source's hidden queue copies each chunk to a slot, and the target's queue copies it from there. A slot is filled again
// when the target's queue has read it, so that both links are busy at the same time.
Result<void> Mover::staged(const Move& move, const WaitList& before_read, const StagedPath& path,
                           const driver::Submission& submission, StagingSlots* given, Moved& moved) {
    std::optional<StagingSlots> own;
    if (!given) {
        POLDER_ASSIGN(taken, staging_->take(bytes_of(move.shape)));
        given = &own.emplace(std::move(taken));
    }
    StagingSlots& slots = *given;
    bool first = true;
    for_each_chunk(move.shape, slots.chunk_bytes(), [&](const Chunk& chunk) {
        const driver::RectShape& shape = chunk.shape;
        const Place between{host_space, slots.address(), {shape.row_bytes, shape.row_bytes * shape.rows}};
        WaitList before_out{&path.out.queue()};
        WaitList before_in{&path.in};
        if (first) {
            before_in.require(submission.waits);
            before_out.add_all(before_read);
        }
        before_out.add(slots.emptied());
        const Place from = moved_by(move.from, chunk.x, chunk.y, chunk.z);
        note_host_copy(from, between, shape);
        moved.read = path.out.queue().copy(operation_of({from, between, shape}), {before_out.view()});
        path.out.submitted(moved.read);
        slots.emptied() = moved.read;

        before_in.add_part(moved.read);
        if (!first)
            before_in.add_part(moved.written);
        const Place to = moved_by(move.to, chunk.x, chunk.y, chunk.z);
        note_host_copy(between, to, shape);
        moved.written = path.in.copy(operation_of({between, to, shape}), {before_in.view(), submission.times});
        if (path.in_lease)
            path.in_lease->submitted(moved.written);
        slots.emptied() = moved.written;
        slots.advance();
        first = false;
    });
    return {};
}

}  // namespace polder::memory
