// Map, unmap and migrate: commands that move bytes to a memory where they are used later. A map transfers the newest bytes to the place
// that the host sees; an unmap after a writing map makes the bytes there the newest; a migration transfers, or only declares, a holder.
#include "domain_impl.h"
#include "failed_command.h"
#include "messages.h"
#include "prepared.h"
#include "transfer/sequence.h"

#include <base/log.h>

namespace polder::memory {
namespace {

Access access_of(MapAccess access) {
    switch (access) {
    case MapAccess::read: return Access::read;
    case MapAccess::write: return Access::write;
    case MapAccess::read_write: return Access::read_write;
    case MapAccess::write_invalidate: return Access::overwrite;
    }
    return Access::read_write;
}

bool has_unwritten(const Residency& residency, ByteRange range) {
    bool found = false;
    residency.visit(range, [&](ByteRange, const RangeState& state) { found = found || state.holders.empty(); });
    return found;
}

}  // namespace

Result<driver::Timepoint> DomainImpl::map(const Execution& execution, Storage& of, const StorageRect& rect,
                                          MapAccess access) {
    Sequence sequence{execution};
    const Use all{&of, rect.span(), access_of(access)};
    const auto body = [&]() -> Result<driver::Timepoint> {
        if (has_short_way(rect)) [[likely]]
            if (const auto mapped = map_in_place(execution, impl(of), all.range, all.access)) [[likely]] {
                log_map(impl(of), rect, access);
                return mapped->done;
            }
        return map_there(sequence, impl(of), rect, access);
    };
    return with_memory({&all, 1}, impl(of).map_place(), &execution.queue, {&all, 1}, body);
}

Result<driver::Timepoint> DomainImpl::map_there(Sequence& sequence, StorageImpl& storage, const StorageRect& rect,
                                                MapAccess access) {
    Residency& residency = storage.residency();
    const SpaceId place = storage.map_place();
    const bool is_read = reads(access_of(access));
    const bool is_written = writes(access_of(access));
    const bool makes_new = !is_read || (is_written && has_unwritten(residency, rect.span()));
    const Rows rows = makes_new ? written_ranges_of(rect, residency, place) : read_ranges_of(rect);
    log_map(storage, rect, access);
    if (trace::enabled()) [[unlikely]]
        storage.record_event(trace::Kind::map, ByteRange::at(rect.offset, ByteCount{bytes_of(rect.shape)}), place);
    const Prepared prepared{residency, rows, 3};
    const Use use{&storage, rect.span()};
    FailedCommand failed{{&use, 1}};
    if (is_read)
        POLDER_TRY(make_resident(storage, rect, place));
    POLDER_TRY(own(storage, rect.span(), place));
    for (const ByteRange& row : rows)
        residency.user_waits(row, place, access_of(access), sequence.before());
    const Version version = next_version(residency, rows.view());
    const driver::Timepoint done = sequence.finish();
    // Commits the bytes as new now, not only at the unmap, when the map leaves them undefined or they were never written. Otherwise an
    // eviction before the unmap, or a command that copies the bytes between its rows too, would overwrite what the application writes.
    if (!is_read)
        residency.commit_write(rows.view(), place, version, done);
    else if (makes_new)
        residency.commit_map_for_writing(rows.view(), place, version, done);
    else
        residency.commit_read(rows.view(), place, TouchKind::user_read, done);
    failed.has_succeeded();
    return done;
}

Result<driver::Timepoint> DomainImpl::unmap(const Execution& execution, Storage& of, const StorageRect& rect,
                                            MapAccess access) {
    const StorageGuard guard{of};
    StorageImpl& storage = impl(of);
    Residency& residency = storage.residency();
    const SpaceId place = storage.map_place();
    if (writes(access_of(access)) && has_short_way(rect)) [[likely]] {
        const InPlace done = *map_in_place(execution, storage, rect.span(), Access::overwrite);
        log_unmap(storage, rect, access, done.version);
        return done.done;
    }
    Sequence sequence{execution};
    if (!writes(access_of(access)))
        return sequence.finish();
    const Rows rows = written_ranges_of(rect, residency, place);
    const Prepared prepared{residency, rows, 1};
    for (const ByteRange& row : rows)
        residency.user_waits(row, place, Access::overwrite, sequence.before());
    const Version version = next_version(residency, rows.view());
    const driver::Timepoint done = sequence.finish();
    residency.commit_write(rows.view(), place, version, done);
    if (trace::enabled()) [[unlikely]]
        storage.record_event(trace::Kind::unmap, ByteRange::at(rect.offset, ByteCount{bytes_of(rect.shape)}), place);
    log_unmap(storage, rect, access, version);
    return done;
}

namespace {

SpaceId place_in(StorageImpl& storage, SpaceId target) {
    return target.is_host() ? storage.map_place() : storage.place_of(target);
}

// The elements of `ranges` that need memory in `target`.
SmallVector<Use, 4> in_target(std::span<const Use> ranges, SpaceId target) {
    SmallVector<Use, 4> needed;
    for (const Use& use : ranges)
        if (place_in(static_cast<StorageImpl&>(*use.storage), target) == target)
            needed.push_back(use);
    return needed;
}

}  // namespace

Result<void> DomainImpl::reserve_migration(std::span<const Use> ranges, SpaceId target, const driver::Queue* queue) {
    return reserve(in_target(ranges, target).view(), target, queue);
}

// Long transfers are done first, without holding the locks. The other ranges are then transferred together, under the locks.
Result<driver::Timepoint> DomainImpl::migrate(const Execution& execution, std::span<const Use> ranges, SpaceId target,
                                              Content content) {
    const SmallVector<Use, 4> needed = in_target(ranges, target);
    for (const Use& use : ranges) {
        if (content == Content::undefined ||
            !has_long_transfer(impl(*use.storage), use.range, place_in(impl(*use.storage), target)))
            continue;
        POLDER_TRY(reserve(needed.view(), target, &execution.queue));
        POLDER_TRY(transfer_in_chunks({&impl(*use.storage), use.range}, target));
    }
    Sequence sequence{execution};
    return with_memory(needed.view(), target, &execution.queue, ranges,
                       [&] { return migrate_there(sequence, ranges, target, content); });
}

Result<driver::Timepoint> DomainImpl::migrate_there(Sequence& sequence, std::span<const Use> ranges, SpaceId target,
                                                    Content content) {
    SmallVector<Version, 8> next;
    FailedCommand failed{ranges};
    for (const Use& use : ranges) {
        StorageImpl& storage = impl(*use.storage);
        storage.residency().prepare({&use.range, 1}, 3);
        const SpaceId place = place_in(storage, target);
        if (content == Content::kept)
            POLDER_TRY(make_resident(storage, StorageRect::of(use.range), place));
        POLDER_TRY(own(storage, use.range, place));
        storage.residency().user_waits(use.range, place, content == Content::kept ? Access::read : Access::overwrite,
                                       sequence.before());
        next.push_back(next_version(storage.residency(), use.range));
    }
    const driver::Timepoint done = sequence.finish();
    failed.has_succeeded();
    if (content == Content::undefined)
        for (size_t i = 0; i < ranges.size(); ++i) {
            StorageImpl& storage = impl(*ranges[i].storage);
            storage.residency().commit_write({&ranges[i].range, 1}, place_in(storage, target), next[i], done);
        }
    // Merges pieces only when every range has been committed: merging could remove a boundary that another range was prepared with.
    for (const Use& use : ranges)
        impl(*use.storage).residency().merge({&use.range, 1});
    POLDER_LOG(memory, "migration of %zu ranges to space %u%s", ranges.size(), target.value,
               content == Content::kept ? "" : ", contents undefined");
    return done;
}

}  // namespace polder::memory
