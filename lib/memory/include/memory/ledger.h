// The ledger: per pair of memory spaces, the bytes that were moved, and the bytes that a perfect plan would
// have moved (the stale bytes that commands were about to read). Any thread.
#pragma once

#include <polder/types.h>
#include <vector>

namespace polder::memory {

class Ledger {
public:
    struct Entry {
        SpaceId from;
        SpaceId to;
        uint64_t transfers = 0;
        uint64_t moved_bytes = 0;
        uint64_t needed_bytes = 0;
    };
    virtual ~Ledger() = default;
    virtual void add(SpaceId from, SpaceId to, ByteCount moved, ByteCount needed) = 0;
    // Pairs with at least one transfer, in order of (from, to). Transfers between application and host
    // replicas count too; reads and writes through host pointers count as pairs with host_space.
    [[nodiscard]] virtual std::vector<Entry> entries() const = 0;
    [[nodiscard]] virtual uint64_t moved_bytes() const = 0;
    virtual void reset() = 0;
};

} // namespace polder::memory
