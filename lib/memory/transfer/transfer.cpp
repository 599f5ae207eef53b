#include "transfer.h"

#include "rect.h"

#include <base/log.h>

#include <polder/driver.h>

namespace polder::memory {
namespace {

driver::CopyOperation::End end_of(const Place& place) {
    using Where = driver::CopyOperation::Place;
    return {is_host_memory(place.space) ? Where::host : Where::device, place.address, place.layout};
}

driver::CopyOperation operation_of(const Move& move) { return {end_of(move.from), end_of(move.to), move.shape}; }

Place moved_by(const Place& place, uint64_t x, uint64_t y, uint64_t z) {
    return {place.space, place.address.plus(x + row_offset(place.layout, y, z)), place.layout};
}

struct Chunk {
    uint64_t x, y, z;
    driver::RectShape shape;
};

// Cuts `shape` into chunks of at most `bytes`: of a row, of whole rows, or of whole slices.
template <class F>
void for_each_chunk(const driver::RectShape& shape, uint64_t bytes, F&& f) {
    const uint64_t row = shape.row_bytes;
    const uint64_t slice = row * shape.rows;
    const uint64_t slices_step = std::max<uint64_t>(1, bytes / slice);
    const uint64_t rows_step = slices_step > 1 ? shape.rows : std::min(shape.rows, std::max<uint64_t>(1, bytes / row));
    const uint64_t x_step = std::min(row, bytes);
    for (uint64_t z = 0; z < shape.slices; z += slices_step)
        for (uint64_t y = 0; y < shape.rows; y += rows_step)
            for (uint64_t x = 0; x < row; x += x_step)
                f(Chunk{x,
                        y,
                        z,
                        {std::min(x_step, row - x), std::min(rows_step, shape.rows - y),
                         std::min(slices_step, shape.slices - z)}});
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
            if (other && other->device() && other != reader && peer_copy->reaches(other->id()))
                topology_.add_peer(reader->id(), other->id());
    }
}

Result<Moved> Mover::hidden(const Move& move, const WaitList& before_read, const WaitList& before_write) {
    const Route route = topology_.route(move.from.space, move.to.space);
    WaitList waits;
    waits.add(before_write.view());
    if (route != Route::staged)
        waits.add(before_read.view());

    HiddenQueues& queues = route == Route::download ? space(move.from.space)->transfers_out()
                           : route == Route::within ? space(host_space)->transfers_in()
                                                    : space(move.to.space)->transfers_in();
    if (route == Route::staged) {
        POLDER_ASSIGN(out, space(move.from.space)->transfers_out().lease());
        POLDER_ASSIGN(in, queues.lease());
        Result<Moved> moved = staged(move, before_read.view(), out, in.queue(), {waits.view()});
        if (moved)
            in.submitted(moved->written);
        return moved;
    }
    POLDER_ASSIGN(lease, queues.lease());
    const driver::Submission submission{waits.view()};
    const driver::Timepoint done = route == Route::peer ? peer(lease.queue(), move, submission)
                                                        : lease.queue().copy(operation_of(move), submission);
    lease.submitted(done);
    return Moved{done, done};
}

Result<Moved> Mover::on_queue(driver::Queue& queue, const Move& move, driver::Waits before_read,
                              const driver::Submission& submission) {
    const Route route = topology_.route(move.from.space, move.to.space);
    if (route == Route::staged) {
        POLDER_ASSIGN(out, space(move.from.space)->transfers_out().lease());
        return staged(move, before_read, out, queue, submission);
    }
    WaitList waits{&queue};
    waits.add(before_read);
    waits.add(submission.waits);
    const driver::Submission all{waits.view(), submission.times};
    const driver::Timepoint done = route == Route::peer ? peer(queue, move, all) : queue.copy(operation_of(move), all);
    return Moved{done, done};
}

Result<Moved> Mover::staged(const Move& move, driver::Waits before_read, HiddenQueues::Lease& out, driver::Queue& in,
                            const driver::Submission& submission) {
    POLDER_ASSIGN(slots, staging_->take(bytes_of(move.shape)));
    Moved moved;
    uint32_t slot = 0;
    bool first = true;
    for_each_chunk(move.shape, slots.chunk_bytes, [&](const Chunk& chunk) {
        const driver::RectShape& shape = chunk.shape;
        const Place between{host_space, slots.slot(slot), {shape.row_bytes, shape.row_bytes * shape.rows}};
        WaitList before_out{&out.queue()};
        if (first)
            before_out.add(before_read);
        before_out.add(slots.emptied[slot]);
        const Place from = moved_by(move.from, chunk.x, chunk.y, chunk.z);
        moved.read = out.queue().copy(operation_of({from, between, shape}), {before_out.view()});
        out.submitted(moved.read);

        WaitList before_in{&in};
        if (first)
            before_in.add(submission.waits);
        before_in.add(moved.read);
        const Place to = moved_by(move.to, chunk.x, chunk.y, chunk.z);
        moved.written = in.copy(operation_of({between, to, shape}), {before_in.view(), submission.times});
        slots.emptied[slot] = moved.written;
        slot = (slot + 1) % slots.count;
        first = false;
    });
    staging_->give_back(slots, moved.written);
    return moved;
}

driver::Timepoint Mover::peer(driver::Queue& queue, const Move& move, const driver::Submission& submission) {
    driver::PeerCopy& peer_copy = *space(move.to.space)->device()->peer_copy();
    driver::Submission next = submission;
    driver::Timepoint done;
    for (uint64_t z = 0; z < move.shape.slices; ++z) {
        for (uint64_t y = 0; y < move.shape.rows; ++y) {
            done = peer_copy.copy(queue, move.from.space, moved_by(move.from, 0, y, z).address,
                                  moved_by(move.to, 0, y, z).address, move.shape.row_bytes, next);
            next.waits = {};
        }
    }
    return done;
}

}  // namespace polder::memory
