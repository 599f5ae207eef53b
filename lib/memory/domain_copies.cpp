// Commands that copy between a storage and the application's memory or another storage: read, write, copy, fill.
#include "domain_impl.h"
#include "transfer/sequence.h"

#include <base/log.h>

namespace polder::memory {
namespace {

// What reading `rows` in `source` has to wait for, by a command on `space`. The application orders it after the
// writers in its own space only as far as it knows of them; elsewhere it acts like a transfer.
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

} // namespace

Result<void> DomainImpl::copy_part(Sequence& sequence, const Execution& execution, const CopyPart& part) {
    Residency& residency = part.storage.residency();
    const Rows rows = rows_of(part.rect);
    const SpaceId source = part.move.from.space;
    const WaitList before_read = waits_to_read(residency, rows, source, execution.space);
    if (mover_.is_possible_on_queue(source, part.move.to.space, execution.space)) {
        POLDER_ASSIGN(moved, mover_.on_queue(execution.queue, part.move, before_read.view(), sequence.next()));
        sequence.submitted(moved.written);
        const TouchKind kind = moved.read.queue == &execution.queue ? TouchKind::user_read : TouchKind::hidden_read;
        residency.commit_read(rows.view(), source, kind, moved.read);
    } else {
        WaitList before_write;
        before_write.add(sequence.begin());
        POLDER_ASSIGN(moved, mover_.hidden(part.move, before_read, before_write));
        sequence.await(moved.written);
        residency.commit_read(rows.view(), source, TouchKind::hidden_read, moved.read);
    }
    const ByteCount bytes{bytes_of(part.rect.shape)};
    if (mover_.topology().route(source, part.move.to.space) != Route::within)
        ledger_.add(source, part.move.to.space, bytes, bytes);
    return {};
}

// Bytes that several spaces hold are read where no link has to be crossed.
Result<driver::Timepoint> DomainImpl::read(const Execution& execution, Storage& from, const StorageRect& rect,
                                           std::byte* to, driver::RectLayout to_layout) {
    const Lock lock{mutex_};
    StorageImpl& storage = impl(from);
    Sequence sequence{execution};
    const RectParts parts =
        split_by_source(storage.residency(), rect, {mover_.topology(), host_space, execution.space});
    for (const RectPart& part : parts) {
        const StorageRect part_rect = part_of(rect, part);
        const DeviceAddress target = DeviceAddress::of(to).plus(part.x + row_offset(to_layout, part.y, part.z));
        const Move move{place_of(part.source, storage.address(part.source), part_rect),
                        {host_space, target, to_layout},
                        part.shape};
        POLDER_TRY(copy_part(sequence, execution, {storage, part_rect, move}));
    }
    POLDER_LOG(memory, "storage %llu: read of %llu bytes on space %u, in %u parts",
               static_cast<unsigned long long>(storage.number()), static_cast<unsigned long long>(bytes_of(rect.shape)),
               execution.space.value, parts.size());
    return sequence.finish();
}

Result<driver::Timepoint> DomainImpl::write(const Execution& execution, Storage& to, const StorageRect& rect,
                                            const std::byte* from, driver::RectLayout from_layout) {
    POLDER_TRY(reserve(to, execution.space, &execution.queue));
    const Lock lock{mutex_};
    StorageImpl& storage = impl(to);
    Residency& residency = storage.residency();
    const Rows rows = rows_of(rect);
    Sequence sequence{execution};
    add_waits_to_overwrite(residency, rows, execution.space, sequence.before());
    const Move move{{host_space, DeviceAddress::of(from), from_layout},
                    place_of(execution.space, storage.address(execution.space), rect),
                    rect.shape};
    POLDER_ASSIGN(moved, mover_.on_queue(execution.queue, move, {}, sequence.next()));
    const ByteCount bytes{bytes_of(rect.shape)};
    ledger_.add(host_space, execution.space, bytes, bytes);
    const Version version = next_version(residency, rows.view());
    residency.commit_write(rows.view(), execution.space, version, moved.written);
    POLDER_LOG(memory, "storage %llu: write of %llu bytes on space %u, version %llu",
               static_cast<unsigned long long>(storage.number()), static_cast<unsigned long long>(bytes.value),
               execution.space.value, static_cast<unsigned long long>(version.value));
    return moved.written;
}

Result<driver::Timepoint> DomainImpl::copy(const Execution& execution, Storage& from, const StorageRect& from_rect,
                                           Storage& to, const StorageRect& to_rect) {
    POLDER_TRY(reserve(to, execution.space, &execution.queue));
    const Lock lock{mutex_};
    StorageImpl& source = impl(from);
    StorageImpl& target = impl(to);
    const Rows to_rows = rows_of(to_rect);
    const DeviceAddress to_base = target.address(execution.space);
    Sequence sequence{execution};
    add_waits_to_overwrite(target.residency(), to_rows, execution.space, sequence.before());
    const RectParts parts =
        split_by_source(source.residency(), from_rect, {mover_.topology(), execution.space, execution.space});
    for (const RectPart& part : parts) {
        const StorageRect part_from = part_of(from_rect, part);
        const Move move{place_of(part.source, source.address(part.source), part_from),
                        place_of(execution.space, to_base, part_of(to_rect, part)), part.shape};
        POLDER_TRY(copy_part(sequence, execution, {source, part_from, move}));
    }
    const driver::Timepoint done = sequence.finish();
    const Version version = next_version(target.residency(), to_rows.view());
    target.residency().commit_write(to_rows.view(), execution.space, version, done);
    POLDER_LOG(memory, "storage %llu: copy of %llu bytes to storage %llu on space %u, version %llu, in %u parts",
               static_cast<unsigned long long>(source.number()),
               static_cast<unsigned long long>(bytes_of(from_rect.shape)),
               static_cast<unsigned long long>(target.number()), execution.space.value,
               static_cast<unsigned long long>(version.value), parts.size());
    return done;
}

Result<driver::Timepoint> DomainImpl::fill(const Execution& execution, Storage& to, ByteRange range,
                                           std::span<const std::byte> pattern) {
    POLDER_TRY(reserve(to, execution.space, &execution.queue));
    const Lock lock{mutex_};
    StorageImpl& storage = impl(to);
    Residency& residency = storage.residency();
    Sequence sequence{execution};
    residency.user_waits(range, execution.space, Access::overwrite, sequence.before());
    const driver::Timepoint done = execution.queue.fill(
        {storage.address(execution.space).plus(range.begin), range.size(), pattern}, sequence.next());
    const Version version = next_version(residency, range);
    residency.commit_write({&range, 1}, execution.space, version, done);
    POLDER_LOG(memory, "storage %llu: fill of [%llu, %llu) on space %u, version %llu",
               static_cast<unsigned long long>(storage.number()), static_cast<unsigned long long>(range.begin),
               static_cast<unsigned long long>(range.end), execution.space.value,
               static_cast<unsigned long long>(version.value));
    return done;
}

} // namespace polder::memory
