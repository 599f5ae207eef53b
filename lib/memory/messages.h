// The messages of POCL_DEBUG=memory about commands. Both the short way (domain_in_place.cpp) and the general way use them. Any thread.
#pragma once

#include "storage_impl.h"
#include "transfer/rect.h"

#include <base/log.h>
#include <memory/domain.h>

namespace polder::memory {

inline void log_fill(const StorageImpl& storage, ByteRange range, SpaceId space, Version version) {
    POLDER_LOG(memory, "storage %llu: fill of [%llu, %llu) on space %u, version %llu", llu(storage.number()),
               llu(range.begin), llu(range.end), space.value, llu(version.value));
}

inline void log_write(const StorageImpl& storage, uint64_t bytes, SpaceId space, Version version) {
    POLDER_LOG(memory, "storage %llu: write of %llu bytes on space %u, version %llu", llu(storage.number()), llu(bytes),
               space.value, llu(version.value));
}

inline void log_copy(const StorageImpl& from, const StorageImpl& to, uint64_t bytes, SpaceId space, Version version) {
    POLDER_LOG(memory, "storage %llu: copy of %llu bytes to storage %llu on space %u, version %llu", llu(from.number()),
               llu(bytes), llu(to.number()), space.value, llu(version.value));
}

inline void log_read(const StorageImpl& storage, uint64_t bytes, SpaceId space, uint32_t parts) {
    POLDER_LOG(memory, "storage %llu: read of %llu bytes on space %u, in %u parts", llu(storage.number()), llu(bytes),
               space.value, parts);
}

inline const char* name_of(MapAccess access) {
    switch (access) {
    case MapAccess::read: return "reading";
    case MapAccess::write: return "writing";
    case MapAccess::read_write: return "reading and writing";
    case MapAccess::write_invalidate: return "overwriting";
    }
    return "?";
}

inline void log_map(const StorageImpl& storage, const StorageRect& rect, MapAccess access) {
    POLDER_LOG(memory, "storage %llu: map of %llu bytes for %s", llu(storage.number()), llu(bytes_of(rect.shape)),
               name_of(access));
}

inline void log_unmap(const StorageImpl& storage, const StorageRect& rect, MapAccess access, Version version) {
    POLDER_LOG(memory, "storage %llu: unmap of %llu bytes after %s, version %llu", llu(storage.number()),
               llu(bytes_of(rect.shape)), name_of(access), llu(version.value));
}

}  // namespace polder::memory
