#include "ledger_impl.h"

#include <algorithm>
#include <tuple>

namespace polder::memory {

void LedgerImpl::add(SpaceId from, SpaceId to, ByteCount moved, ByteCount needed) {
    if (from == to)
        return;  // stays in its memory
    const Lock lock{mutex_};
    auto entry = std::find_if(entries_.begin(), entries_.end(),
                              [&](const Entry& known) { return known.from == from && known.to == to; });
    if (entry == entries_.end())
        entry = entries_.insert(entries_.end(), Entry{from, to});
    ++entry->transfers;
    entry->moved_bytes += moved.value;
    entry->needed_bytes += needed.value;
}

std::vector<Ledger::Entry> LedgerImpl::entries() const {
    std::vector<Entry> result;
    {
        const Lock lock{mutex_};
        result = entries_;
    }
    std::sort(result.begin(), result.end(),
              [](const Entry& a, const Entry& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
    return result;
}

uint64_t LedgerImpl::moved_bytes() const {
    const Lock lock{mutex_};
    uint64_t bytes = 0;
    for (const Entry& entry : entries_)
        bytes += entry.moved_bytes;
    return bytes;
}

void LedgerImpl::reset() {
    const Lock lock{mutex_};
    entries_.clear();
}

} // namespace polder::memory
