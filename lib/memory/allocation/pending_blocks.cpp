// Entries and their lists. `advance` moves an entry to the list of the next timepoint that is not complete.
#include <memory/pending_blocks.h>

#include <algorithm>
#include <new>

namespace polder::memory {

PendingBlocks::~PendingBlocks() {
    for (Chunk& chunk : chunks_)
        for (uint64_t index = 0; index < chunk.made; ++index)
            std::destroy_at(reinterpret_cast<Entry*>(chunk.memory.get()) + index);
}

void PendingBlocks::provide(uint64_t blocks) {
    if (blocks <= capacity_) [[likely]]
        return;
    chunks_.reserve(64);
    const uint64_t entries = std::max({first_chunk, capacity_, blocks - capacity_});
    // Not initialized, so that pages without entries are never accessed.
    chunks_.push_back({std::make_unique_for_overwrite<std::byte[]>(entries * sizeof(Entry)), entries, 0});
    capacity_ += entries;
}

PendingBlocks::Entry* PendingBlocks::make_entry() noexcept {
    if (Entry* entry = spare_) {
        spare_ = entry->next;
        return entry;
    }
    for (Chunk& chunk : chunks_)
        if (chunk.made < chunk.entries)
            return new (chunk.memory.get() + chunk.made++ * sizeof(Entry)) Entry;
    assert(false && "a block that was never allocated");
    __builtin_unreachable();
}

void PendingBlocks::recycle(Entry* entry) noexcept {
    --size_;
    entry->next = spare_;
    spare_ = entry;
}

void PendingBlocks::add(const Block& block, Timepoints&& after) noexcept {
    assert(!after.empty());
    Entry* entry = make_entry();
    ++size_;
    entry->block = block;
    entry->number = ++last_number_;
    entry->until = after.back();
    after.resize_down(after.size() - 1);
    entry->afterwards = std::move(after);
    link(entry);
}

PendingBlocks::List& PendingBlocks::list_of(const driver::Queue* queue) noexcept {
    for (List& list : lists_)
        if (list.queue == queue)
            return list;
    try {
        return lists_.emplace_back(List{queue, nullptr, nullptr});
    } catch (const std::bad_alloc&) {
        return others_;
    }
}

void PendingBlocks::link(Entry* entry) noexcept {
    List& list = list_of(entry->until.queue);
    Entry* before = list.last;
    if (&list != &others_)
        while (before && before->until.value > entry->until.value)
            before = before->previous;
    entry->previous = before;
    entry->next = before ? before->next : list.first;
    (before ? before->next : list.first) = entry;
    (entry->next ? entry->next->previous : list.last) = entry;
}

void PendingBlocks::unlink(List& list, Entry* entry) noexcept {
    (entry->previous ? entry->previous->next : list.first) = entry->next;
    (entry->next ? entry->next->previous : list.last) = entry->previous;
}

bool PendingBlocks::advance(Entry* entry) noexcept {
    while (!entry->afterwards.empty()) {
        const driver::Timepoint next = entry->afterwards.back();
        entry->afterwards.resize_down(entry->afterwards.size() - 1);
        if (next.is_complete())
            continue;
        entry->until = next;
        link(entry);
        return false;
    }
    return true;
}

std::optional<driver::Timepoint> PendingBlocks::oldest() const {
    const Entry* oldest = nullptr;
    const auto consider = [&](const List& list) {
        if (list.first && (!oldest || list.first->number < oldest->number))
            oldest = list.first;
    };
    for (const List& list : lists_)
        consider(list);
    consider(others_);
    return oldest ? std::optional{oldest->until} : std::nullopt;
}

// True when the entry, which is in the list of `queue`, waits for no other queue.
bool PendingBlocks::waits_only_for(const Entry& entry, const driver::Queue* queue) {
    for (const driver::Timepoint& point : entry.afterwards)
        if (point.queue != queue && !point.is_complete())
            return false;
    return true;
}

std::vector<Block> PendingBlocks::blocks_of(const driver::Queue* queue) const {
    std::vector<Block> blocks;
    for (const List& list : lists_)
        for (const Entry* entry = list.queue == queue ? list.first : nullptr; entry; entry = entry->next)
            if (waits_only_for(*entry, queue))
                blocks.push_back(entry->block);
    return blocks;
}

Lease PendingBlocks::lease_of(const Entry& entry) {
    Lease lease{entry.block, {}};
    if (!entry.until.is_complete())
        lease.after.push_back(entry.until);
    for (const driver::Timepoint& point : entry.afterwards)
        if (!point.is_complete())
            lease.after.push_back(point);
    return lease;
}

bool PendingBlocks::validate() const {
    uint64_t entries = 0;
    const auto check = [&](const List& list, bool ordered) {
        const Entry* previous = nullptr;
        for (const Entry* entry = list.first; entry; previous = entry, entry = entry->next, ++entries)
            if (entry->previous != previous || (ordered && previous && previous->until.value > entry->until.value))
                return false;
        return list.last == previous;
    };
    for (const List& list : lists_)
        if (!check(list, true))
            return false;
    return check(others_, false) && entries == size_ && size_ <= capacity_;
}

} // namespace polder::memory
