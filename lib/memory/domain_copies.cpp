// Read, write, copy and fill: commands that copy between a storage and the application's memory, or between storages. The rectangle is
// split into parts by source; each part is copied by an operation and committed as soon as it is submitted.
#include "domain_impl.h"
#include "messages.h"
#include "prepared.h"
#include "transfer/sequence.h"

#include <base/log.h>
#include <base/scope_exit.h>
#include <memory/rect_fill.h>

#include <algorithm>
#include <optional>

namespace polder::memory {
namespace {

// The timepoints that a command in `space` has to wait for before it reads `rows` in `source`. In its own space the command waits
// only for the writers that the residency lists; in another space it waits as a transfer does.
WaitList waits_to_read(const Residency& residency, const Rows& rows, SpaceId source, SpaceId space) {
    WaitList waits;
    for (const ByteRange& row : rows) {
        if (source == space)
            residency.user_waits(row, source, Access::read, waits);
        else
            residency.hidden_read_waits(row, source, waits);
    }
    return waits;
}

void add_waits_to_overwrite(const Residency& residency, const Rows& rows, SpaceId space, WaitList& waits) {
    for (const ByteRange& row : rows)
        residency.user_waits(row, space, Access::overwrite, waits);
}

}  // namespace

Result<void> DomainImpl::copy_part(Sequence& sequence, const Execution& execution, const CopyPart& part, Moved& moved) {
    POLDER_TRY(own(part.storage, part.rect.span(), part.move.from.space));
    Residency& residency = part.storage.residency();
    const Rows rows = read_ranges_of(part.rect);
    // The command has prepared rows that touch as one range, and this part may begin or end within it.
    residency.prepare(rows.view(), 1);
    const SpaceId source = part.move.from.space;
    const bool on_queue = mover_.is_possible_on_queue(source, part.move.to.space, execution.space);
    const WaitList before_read = waits_to_read(residency, rows, source, execution.space);
    // Commits the reading, also when only some of the part's operations were submitted.
    const ScopeExit commit{[&]() noexcept {
        if (!moved.has_begun())
            return;
        if (on_queue && moved.written.queue)
            sequence.submitted(moved.written);
        else if (!on_queue)
            sequence.await(moved.written);
        const TouchKind kind = moved.read.queue == &execution.queue ? TouchKind::user_read : TouchKind::hidden_read;
        residency.commit_read(rows.view(), source, kind, moved.read);
    }};
    if (on_queue) {
        POLDER_TRY(mover_.on_queue(execution.queue, part.move, before_read, sequence.next(), part.slots, moved));
    } else {
        WaitList before_write;
        before_write.add(sequence.begin());
        sequence.prepare_to_await();
        POLDER_TRY(mover_.hidden(part.move, before_read, before_write, nullptr, moved));
    }
    if (mover_.topology().route(source, part.move.to.space) != Route::within)
        ledger_.add_moved(source, part.move.to.space, ByteCount{bytes_of(part.rect.shape)});
    if (trace::enabled()) [[unlikely]]
        trace_transfer(part.storage, part.rect, source, part.move.to.space, moved.written, Transferring::reading);
    return {};
}

// When several spaces hold the bytes, they are read from the one that needs no transfer over a link.
Result<driver::Timepoint> DomainImpl::read(const Execution& execution, Storage& from, const StorageRect& rect,
                                           std::byte* to, driver::RectLayout to_layout) {
    if (impl(from).is_in_place_of(execution.space)) [[unlikely]]
        return read(in_host_memory(execution), from, rect, to, to_layout);
    if (execution.space.is_host() && has_short_way(rect)) [[likely]] {
        const StorageGuard guard{from};
        if (const auto done = read_in_place(execution, impl(from), rect.span(), to)) [[likely]]
            return *done;
    }
    Sequence sequence{execution};
    const StorageGuard guard{from};
    StorageImpl& storage = impl(from);
    const Rows ranges = read_ranges_of(rect);
    const Prepared prepared{storage.residency(), ranges, 1};
    const SourceChoice choice{mover_.topology(), host_space, execution.space};
    count_needed(storage.residency(), rect, choice, HostPlaces::alike);
    const RectParts parts = split_by_source(storage.residency(), storage.replicas(), rect, choice);
    for (const RectPart& part : parts) {
        const StorageRect part_rect = part_of(rect, part);
        const DeviceAddress target = DeviceAddress::of(to).plus(part.x + row_offset(to_layout, part.y, part.z));
        const Move move{place_of(part.source, part.base, part_rect), {host_space, target, to_layout}, part.shape};
        Moved moved;
        POLDER_TRY(copy_part(sequence, execution, {storage, part_rect, move}, moved));
    }
    log_read(storage, bytes_of(rect.shape), execution.space, parts.size());
    return sequence.finish();
}

Result<driver::Timepoint> DomainImpl::write(const Execution& execution, Storage& to, const StorageRect& rect,
                                            const std::byte* from, driver::RectLayout from_layout) {
    if (impl(to).is_in_place_of(execution.space)) [[unlikely]]
        return write(in_host_memory(execution), to, rect, from, from_layout);
    const Use all{&to, rect.span(), Access::overwrite};
    const bool is_short = has_short_way(rect);
    return with_memory({&all, 1}, execution.space, &execution.queue, {&all, 1}, [&]() -> Result<driver::Timepoint> {
        if (is_short) [[likely]]
            return write_in_place(execution, impl(to), all.range, from);
        return write_there(execution, impl(to), rect, from, from_layout);
    });
}

Result<driver::Timepoint> DomainImpl::write_there(const Execution& execution, StorageImpl& storage,
                                                  const StorageRect& rect, const std::byte* from,
                                                  driver::RectLayout from_layout) {
    POLDER_TRY(own(storage, rect.span(), execution.space));
    Residency& residency = storage.residency();
    const Rows rows = written_ranges_of(rect, residency, execution.space);
    const Prepared prepared{residency, rows, 1};
    WaitList waits{&execution.queue};
    waits.require(execution.waits);
    add_waits_to_overwrite(residency, rows, execution.space, waits);
    const Version version = next_version(residency, rows.view());
    const Move move{{host_space, DeviceAddress::of(from), from_layout},
                    place_of(execution.space, storage.base(execution.space, rect.span()), rect),
                    rect.shape};
    Moved moved;
    POLDER_TRY(mover_.on_queue(execution.queue, move, WaitList{}, {waits.view(), execution.times}, nullptr, moved));
    residency.commit_write(rows.view(), execution.space, version, moved.written);
    const ByteCount bytes{bytes_of(rect.shape)};
    ledger_.add_moved(host_space, execution.space, bytes);
    if (trace::enabled()) [[unlikely]]
        trace_transfer(storage, rect, host_space, execution.space, moved.written, Transferring::writing);
    ledger_.add_needed(host_space, execution.space, bytes);
    log_write(storage, bytes.value, execution.space, version);
    return moved.written;
}

// --- copies from storage to storage ---

Result<driver::Timepoint> DomainImpl::copy(const Execution& execution, Storage& from, const StorageRect& from_rect,
                                           Storage& to, const StorageRect& to_rect) {
    // When the device uses the target in host memory, the copy runs there, on the device's queue. A source in place needs no such case.
    if (impl(to).is_in_place_of(execution.space)) [[unlikely]]
        return copy(in_host_memory(execution), from, from_rect, to, to_rect);
    Sequence sequence{execution};
    Copying copying{sequence, execution, impl(from), impl(to)};
    if (has_long_copy(impl(from), from_rect, execution.space))
        return copy_in_chunks(copying, from_rect, to_rect);
    const Use both[] = {{&to, to_rect.span(), Access::overwrite}, {&from, from_rect.span(), Access::read}};
    const bool is_short = has_short_way(from_rect) && has_short_way(to_rect);
    return with_memory({both, 1}, execution.space, &execution.queue, both, [&]() -> Result<driver::Timepoint> {
        if (is_short) [[likely]]
            if (const auto done =
                    copy_in_place(execution, copying.source, from_rect.span(), copying.target, to_rect.span()))
                return *done;
        return copy_there(copying, from_rect, to_rect);
    });
}

Result<driver::Timepoint> DomainImpl::copy_there(Copying& copying, const StorageRect& from_rect,
                                                 const StorageRect& to_rect) {
    const SpaceId space = copying.execution.space;
    Residency& residency = copying.target.residency();
    const Rows rows = written_ranges_of(to_rect, residency, space);
    const Rows from_ranges = read_ranges_of(from_rect);
    // Both stay prepared until the last commit, because the two ranges may belong to one storage.
    const Prepared from_prepared{copying.source.residency(), from_ranges, 1};
    // Three touches: a part is written by the command's queue or by a hidden queue, and the command completes on its own queue.
    const Prepared prepared{residency, rows, 3};
    POLDER_TRY(copy_rect(copying, from_rect, to_rect));
    const driver::Timepoint done = copying.sequence.finish();
    residency.commit_write(rows.view(), space, copying.version, done);
    if (trace::enabled()) [[unlikely]]
        trace_transfer(copying.target, to_rect, space, space, done, Transferring::writing);
    log_copy(copying.source, copying.target, bytes_of(from_rect.shape), space, copying.version);
    return done;
}

// Commits each part of the target as soon as it is submitted, so that after a failure halfway the residency knows all operations.
Result<void> DomainImpl::copy_rect(Copying& copying, const StorageRect& from_rect, const StorageRect& to_rect) {
    const Execution& execution = copying.execution;
    StorageImpl& source = copying.source;
    POLDER_TRY(own(copying.target, to_rect.span(), execution.space));
    Residency& target = copying.target.residency();
    const Rows to_rows = written_ranges_of(to_rect, target, execution.space);
    WaitList before_write{&execution.queue};
    add_waits_to_overwrite(target, to_rows, execution.space, before_write);
    copying.sequence.wait_for(before_write.view());
    copying.version = std::max(copying.version, next_version(target, to_rows.view()));
    const DeviceAddress to_base = copying.target.base(execution.space, to_rect.span());
    const SourceChoice choice{mover_.topology(), execution.space, execution.space};
    count_needed(source.residency(), from_rect, choice, HostPlaces::alike);
    const RectParts parts = split_by_source(source.residency(), source.replicas(), from_rect, choice);
    for (const RectPart& part : parts) {
        const StorageRect part_from = part_of(from_rect, part);
        const StorageRect part_to = part_of(to_rect, part);
        const Move move{place_of(part.source, part.base, part_from), place_of(execution.space, to_base, part_to),
                        part.shape};
        const Rows written = to_rows.size() == 1 ? rows_of(StorageRect::of(part_to.span())) : rows_of(part_to);
        target.prepare(written.view(), 3);
        Moved moved;
        const ScopeExit commit{[&]() noexcept {
            if (moved.written.queue)
                target.commit_write(written.view(), execution.space, copying.version, moved.written);
            if (moved.read.queue)
                copying.last_read = {part.source, moved.read};
        }};
        POLDER_TRY(copy_part(copying.sequence, execution, {source, part_from, move, copying.slots}, moved));
    }
    return {};
}

bool DomainImpl::has_long_copy(StorageImpl& storage, const StorageRect& rect, SpaceId target) const {
    const uint64_t bytes = bytes_of(rect.shape);
    if (is_host_memory(target) || Staging::chunk_bytes(bytes) == bytes)
        return false;
    const SourceChoice choice{mover_.topology(), target, target};
    const StorageGuard guard{storage};
    bool found = false;
    for (const ByteRange& row : rows_of(rect))
        storage.residency().visit(row, [&](ByteRange, const RangeState& state) {
            found = found ||
                    (!state.holders.empty() && mover_.topology().route(choice(state.holders), target) == Route::staged);
        });
    return found;
}

// The storages are locked for one chunk at a time. In between, other threads may write to both storages or evict them, so memory
// is reserved and the copy is planned for each chunk. When a chunk fails, the command has failed. The earlier chunks stay committed:
// the target's contents are undefined then, but the residency knows who holds them.
Result<driver::Timepoint> DomainImpl::copy_in_chunks(Copying& copying, const StorageRect& from_rect,
                                                     const StorageRect& to_rect) {
    const Execution& execution = copying.execution;
    const Use both[] = {{&copying.target, to_rect.span(), Access::overwrite},
                        {&copying.source, from_rect.span(), Access::read}};
    POLDER_TRY(reserve({both, 1}, execution.space, &execution.queue));
    POLDER_ASSIGN(slots, mover_.staging().take(bytes_of(from_rect.shape)));
    const uint64_t chunk_bytes = slots.chunk_bytes();
    std::optional<StagingSlots> kept{std::move(slots)};
    // The reserve block is held like a lock, and may be taken only after the storages' locks: each chunk takes it again.
    if (kept->is_reserve())
        kept.reset();
    copying.slots = kept ? &*kept : nullptr;
    Result<driver::Timepoint> result{driver::Timepoint{}};
    for_each_chunk(from_rect.shape, chunk_bytes, [&](const Chunk& chunk) {
        if (!result)
            return;
        result = with_memory({both, 1}, execution.space, &execution.queue, both,
                             [&] { return copy_chunk(copying, from_rect, to_rect, chunk); });
        StorageGuard::pass(copying.source);
        StorageGuard::pass(copying.target);
    });
    if (!result)
        return result;
    return end_chunks(copying, from_rect, to_rect);
}

namespace {

// The bytes of `rect` before `chunk`, if the rectangle is one range of bytes; otherwise an empty range.
ByteRange bytes_before(const StorageRect& rect, const Chunk& chunk) {
    return {rect.offset, is_one_range(rect) ? part_of(rect, chunk).offset : rect.offset};
}

}  // namespace

// The bytes before the chunk get the same touches as the chunk, so that the residency can merge them: two pieces remain, one up to
// the end of the chunk and one after it.
Result<driver::Timepoint> DomainImpl::copy_chunk(Copying& copying, const StorageRect& from_rect,
                                                 const StorageRect& to_rect, const Chunk& chunk) {
    const SpaceId space = copying.execution.space;
    Residency& source = copying.source.residency();
    Residency& target = copying.target.residency();
    const ByteRange read_before = bytes_before(from_rect, chunk);
    const ByteRange written_before = bytes_before(to_rect, chunk);
    source.prepare({&read_before, 1}, 1);
    target.prepare({&written_before, 1}, 1);
    const Rows from_ranges = read_ranges_of(part_of(from_rect, chunk));
    const Rows rows = rows_of(part_of(to_rect, chunk));
    const Prepared from_prepared{source, from_ranges, 1};
    const Prepared prepared{target, rows, 4};
    POLDER_TRY(copy_rect(copying, part_of(from_rect, chunk), part_of(to_rect, chunk)));
    // Commits the whole chunk, including bytes that were never written in the source.
    const driver::Timepoint done = copying.sequence.begin();
    target.commit_write(rows.view(), space, copying.version, done);
    target.commit_read({&written_before, 1}, space, TouchKind::user_write, done);
    const Copying::Read& read = copying.last_read;
    if (read.done.queue)
        source.commit_read({&read_before, 1}, read.space, read.kind(copying.execution), read.done);
    const ByteRange read_so_far{read_before.begin, part_of(from_rect, chunk).span().end};
    source.merge({&read_so_far, 1});
    return done;
}

Result<driver::Timepoint> DomainImpl::end_chunks(Copying& copying, const StorageRect& from_rect,
                                                 const StorageRect& to_rect) {
    const Use target{&copying.target, to_rect.span(), Access::overwrite};
    const StorageGuard guard{{&target, 1}};
    const Rows rows = rows_of(to_rect);
    const Prepared prepared{copying.target.residency(), rows, 1};
    const driver::Timepoint done = copying.sequence.finish();
    copying.target.residency().commit_read(rows.view(), copying.execution.space, TouchKind::user_write, done);
    if (trace::enabled()) [[unlikely]]
        trace_transfer(copying.target, to_rect, copying.execution.space, copying.execution.space, done,
                       Transferring::writing);
    POLDER_LOG(memory, "storage %llu: copy of %llu bytes to storage %llu on space %u, version %llu, in chunks",
               static_cast<unsigned long long>(copying.source.number()),
               static_cast<unsigned long long>(bytes_of(from_rect.shape)),
               static_cast<unsigned long long>(copying.target.number()), copying.execution.space.value,
               static_cast<unsigned long long>(copying.version.value));
    return done;
}

Result<driver::Timepoint> DomainImpl::fill_rect(const Execution& execution, Storage& to, const StorageRect& rect,
                                                std::span<const std::byte> pattern) {
    if (impl(to).is_in_place_of(execution.space)) [[unlikely]]
        return fill_rect(in_host_memory(execution), to, rect, pattern);
    const Use all{&to, rect.span(), Access::overwrite};
    return with_memory({&all, 1}, execution.space, &execution.queue, {&all, 1}, [&]() -> Result<driver::Timepoint> {
        if (has_short_way(rect)) [[likely]]
            return fill_in_place(execution, impl(to), all.range, pattern);
        return fill_there(execution, impl(to), rect, pattern);
    });
}

Result<driver::Timepoint> DomainImpl::fill_there(const Execution& execution, StorageImpl& storage,
                                                 const StorageRect& rect, std::span<const std::byte> pattern) {
    const ByteRange range = rect.span();
    POLDER_TRY(own(storage, range, execution.space));
    Residency& residency = storage.residency();
    const Rows rows = written_ranges_of(rect, residency, execution.space);
    const Prepared prepared{residency, rows, 1};
    WaitList waits{&execution.queue};
    waits.require(execution.waits);
    add_waits_to_overwrite(residency, rows, execution.space, waits);
    const Version version = next_version(residency, rows.view());
    driver::Timepoint done;
    {
        // Commits what was submitted, also when the submission of one of several operations throws.
        const ScopeExit commit{[&]() noexcept {
            if (done.queue)
                residency.commit_write(rows.view(), execution.space, version, done);
        }};
        submit_rect_fill(execution.queue, *storage.find(execution.space, range), rect.shape, rect.layout, pattern,
                         {waits.view(), execution.times}, done);
    }
    if (trace::enabled()) [[unlikely]]
        trace_transfer(storage, rect, execution.space, execution.space, done, Transferring::writing);
    log_fill(storage, range, execution.space, version);
    return done;
}

}  // namespace polder::memory
