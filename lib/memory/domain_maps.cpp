// Commands that move bytes for what comes later: map, unmap, migrate.
#include "domain_impl.h"
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

const char* name_of(MapAccess access) {
    switch (access) {
    case MapAccess::read: return "reading";
    case MapAccess::write: return "writing";
    case MapAccess::read_write: return "reading and writing";
    case MapAccess::write_invalidate: return "overwriting";
    }
    return "?";
}

} // namespace

Result<driver::Timepoint> DomainImpl::map(const Execution& execution, Storage& of, const StorageRect& rect,
                                          MapAccess access) {
    POLDER_TRY(reserve_map(of));
    const Lock lock{mutex_};
    StorageImpl& storage = impl(of);
    Residency& residency = storage.residency();
    const SpaceId place = storage.map_place();
    const Rows rows = rows_of(rect);
    POLDER_LOG(memory, "storage %llu: map of %llu bytes for %s", static_cast<unsigned long long>(storage.number()),
               static_cast<unsigned long long>(bytes_of(rect.shape)), name_of(access));
    if (reads(access_of(access)))
        POLDER_TRY(bring(storage, rect, place));
    Sequence sequence{execution};
    for (const ByteRange& row : rows)
        residency.user_waits(row, place, access_of(access), sequence.before());
    const driver::Timepoint done = sequence.finish();
    residency.commit_read(rows.view(), place, TouchKind::user_read, done);
    return done;
}

Result<driver::Timepoint> DomainImpl::unmap(const Execution& execution, Storage& of, const StorageRect& rect,
                                            MapAccess access) {
    const Lock lock{mutex_};
    StorageImpl& storage = impl(of);
    Residency& residency = storage.residency();
    const SpaceId place = storage.map_place();
    const Rows rows = rows_of(rect);
    Sequence sequence{execution};
    if (!writes(access_of(access)))
        return sequence.finish();
    for (const ByteRange& row : rows)
        residency.user_waits(row, place, Access::overwrite, sequence.before());
    const driver::Timepoint done = sequence.finish();
    const Version version = next_version(residency, rows.view());
    residency.commit_write(rows.view(), place, version, done);
    POLDER_LOG(memory, "storage %llu: unmap of %llu bytes after %s, version %llu",
               static_cast<unsigned long long>(storage.number()), static_cast<unsigned long long>(bytes_of(rect.shape)),
               name_of(access), static_cast<unsigned long long>(version.value));
    return done;
}

Result<driver::Timepoint> DomainImpl::migrate(const Execution& execution, std::span<const Use> ranges, SpaceId target,
                                              Content content) {
    for (const Use& use : ranges)
        POLDER_TRY(target.is_host() ? reserve_map(*use.storage) : reserve(*use.storage, target, &execution.queue));
    const Lock lock{mutex_};
    Sequence sequence{execution};
    for (const Use& use : ranges) {
        StorageImpl& storage = impl(*use.storage);
        const SpaceId place = target.is_host() ? storage.map_place() : target;
        if (content == Content::kept)
            POLDER_TRY(bring(storage, StorageRect::of(use.range), place));
        storage.residency().user_waits(use.range, place, content == Content::kept ? Access::read : Access::overwrite,
                                       sequence.before());
    }
    const driver::Timepoint done = sequence.finish();
    if (content == Content::undefined) {
        for (const Use& use : ranges) {
            StorageImpl& storage = impl(*use.storage);
            const SpaceId place = target.is_host() ? storage.map_place() : target;
            storage.residency().commit_write({&use.range, 1}, place, next_version(storage.residency(), use.range),
                                             done);
        }
    }
    POLDER_LOG(memory, "migration of %zu ranges to space %u%s", ranges.size(), target.value,
               content == Content::kept ? "" : ", contents undefined");
    return done;
}

} // namespace polder::memory
