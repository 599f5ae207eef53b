#include "ledger_impl.h"

#include <base/thread_number.h>

#include <algorithm>
#include <cassert>

namespace polder::memory {

LedgerImpl::LedgerImpl(std::span<const SpaceId> spaces) : spaces_(spaces.begin(), spaces.end()) {
    std::sort(spaces_.begin(), spaces_.end());
    for (size_t i = 0; i < spaces_.size(); ++i)
        index_[spaces_[i].value] = static_cast<uint8_t>(i);
    constexpr size_t granule = 8;  // counters of 24 bytes: three cache lines
    stride_ = (spaces_.size() * spaces_.size() + granule - 1) / granule * granule + granule;
    counters_ = std::make_unique<Counters[]>(stride_ * copies);
}

LedgerImpl::Counters& LedgerImpl::mine(SpaceId from, SpaceId to) noexcept {
    assert(spaces_[index_[from.value]] == from && spaces_[index_[to.value]] == to);
    return counters_[stride_ * (thread_number() % copies) + pair(from, to)];
}

LedgerImpl::Counters& LedgerImpl::add(SpaceId from, SpaceId to, ByteCount bytes) noexcept {
    Counters& counters = mine(from, to);
    counters.transfers.fetch_add(1, std::memory_order_relaxed);
    counters.moved.fetch_add(bytes.value, std::memory_order_relaxed);
    return counters;
}

void LedgerImpl::add_needed(SpaceId from, SpaceId to, ByteCount bytes) noexcept {
    if (from != to)
        mine(from, to).needed.fetch_add(bytes.value, std::memory_order_relaxed);
}

Ledger::Entry LedgerImpl::sum(SpaceId from, SpaceId to) const {
    Entry entry{from, to};
    for (uint32_t copy = 0; copy < copies; ++copy) {
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
    for (size_t i = 0; i < stride_ * copies; ++i) {
        counters_[i].transfers.store(0, std::memory_order_relaxed);
        counters_[i].moved.store(0, std::memory_order_relaxed);
        counters_[i].needed.store(0, std::memory_order_relaxed);
    }
}

} // namespace polder::memory
