#include "ledger_impl.h"

#include <algorithm>

namespace polder::memory {

LedgerImpl::LedgerImpl(std::span<const SpaceId> spaces) : spaces_(spaces.begin(), spaces.end()) {
    std::sort(spaces_.begin(), spaces_.end());
    for (size_t i = 0; i < spaces_.size(); ++i)
        index_[spaces_[i].value] = static_cast<uint8_t>(i);
    constexpr size_t granule = 8;  // counters of 24 bytes: three cache lines
    stride_ = (spaces_.size() * spaces_.size() + granule - 1) / granule * granule + granule;
    own_copies_ = spaces_.size() <= spaces_with_own_copies ? 16 : 0;
    counters_ = std::make_unique<Counters[]>(stride_ * copies());
}

void LedgerImpl::add_needed(SpaceId from, SpaceId to, ByteCount bytes) noexcept {
    if (from == to)
        return;
    const uint32_t thread = thread_number();
    count(thread, mine(thread, from, to).needed, bytes.value);
}

Ledger::Entry LedgerImpl::sum(SpaceId from, SpaceId to) const {
    Entry entry{from, to};
    for (uint32_t copy = 0; copy < copies(); ++copy) {
        const Counters& counters = counters_[stride_ * copy + pair(from, to)];
        entry.transfers += counters.transfers.load(std::memory_order_relaxed);
        entry.moved_bytes += counters.moved.load(std::memory_order_relaxed);
        entry.needed_bytes += counters.needed.load(std::memory_order_relaxed);
    }
    return entry;
}

template <class F>
void LedgerImpl::for_each_pair(F&& f) const {
    for (const SpaceId from : spaces_)
        for (const SpaceId to : spaces_)
            f(sum(from, to));
}

std::vector<Ledger::Entry> LedgerImpl::entries() const {
    std::vector<Entry> result;
    for_each_pair([&](const Entry& entry) {
        if (entry.transfers > 0)
            result.push_back(entry);
    });
    return result;
}

uint64_t LedgerImpl::moved_bytes() const {
    uint64_t bytes = 0;
    for_each_pair([&](const Entry& entry) { bytes += entry.from != entry.to ? entry.moved_bytes : 0; });
    return bytes;
}

uint64_t LedgerImpl::gathered_bytes() const {
    uint64_t bytes = 0;
    for_each_pair([&](const Entry& entry) { bytes += entry.from == entry.to ? entry.moved_bytes : 0; });
    return bytes;
}

uint64_t LedgerImpl::needed_bytes() const {
    uint64_t bytes = 0;
    for_each_pair([&](const Entry& entry) { bytes += entry.needed_bytes; });
    return bytes;
}

void LedgerImpl::reset() {
    for (size_t i = 0; i < stride_ * copies(); ++i) {
        counters_[i].transfers.store(0, std::memory_order_relaxed);
        counters_[i].moved.store(0, std::memory_order_relaxed);
        counters_[i].needed.store(0, std::memory_order_relaxed);
    }
}

} // namespace polder::memory
