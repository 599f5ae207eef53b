// PendingBlocks: blocks that were freed while commands in flight still use them.
//
// A block waits for several timepoints, one after the other: it is in the list of the queue of the first timepoint that is not
// complete, in ascending order of the value. Entries are allocated together with blocks (provide), so that freeing
// needs no memory. Blocks of a queue for which no list could be allocated are in one common list.
//
// add is O(1) when blocks are freed in the order of their queue's values. Not thread-safe: guarded by its owner's lock.
#pragma once

#include <base/biased_mutex.h>
#include <memory/lease.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace polder::memory {

// The most pending blocks that one ordinary allocation frees: more than one, so that they do not accumulate.
inline constexpr uint32_t drained_at_most = 32;

// Frees every pending block whose commands are complete, in parts, so that other threads get the lock in between: drain_part(),
// which is called with `mutex` held, frees at most drained_at_most of them and returns how many.
template <class DrainPart>
void drain_in_parts(BiasedMutex& mutex, DrainPart&& drain_part) {
    for (uint32_t freed = 1; freed != 0;) {
        const BiasedLock lock(mutex);
        freed = drain_part();
    }
}

class PendingBlocks {
public:
    struct Entry {
        Block block;
        driver::Timepoint until;
        Timepoints afterwards;  // the timepoints that it waits for next
        uint64_t number = 0;  // ascending in the order in which blocks were freed
        Entry* previous = nullptr;
        Entry* next = nullptr;
    };

    PendingBlocks() = default;
    ~PendingBlocks();
    PendingBlocks(const PendingBlocks&) = delete;
    PendingBlocks& operator=(const PendingBlocks&) = delete;

    // Makes room for `blocks` blocks altogether. std::bad_alloc leaves everything as it was.
    void provide(uint64_t blocks);
    // `provide` has made room for the block, and `after` is not empty.
    void add(const Block& block, Timepoints&& after) noexcept;

    [[nodiscard]] uint64_t size() const { return size_; }
    // Calls take_back(const Block&) for at most `count` blocks whose timepoints are complete. Returns how many.
    template <class TakeBack>
    uint32_t drain(uint32_t count, TakeBack&& take_back) noexcept;
    // The timepoint that the oldest block waits for.
    [[nodiscard]] std::optional<driver::Timepoint> oldest() const;

    // Removes one of the newest blocks of `queue` that waits for this queue alone and satisfies fits(const Block&).
    template <class Fits>
    [[nodiscard]] std::optional<Lease> take_of(const driver::Queue* queue, Fits&& fits);
    // Removes the oldest block of any queue that satisfies fits(const Block&). Examines only a few blocks of each queue.
    template <class Fits>
    [[nodiscard]] std::optional<Lease> take_any(Fits&& fits);
    // The blocks that wait for `queue` alone.
    [[nodiscard]] std::vector<Block> blocks_of(const driver::Queue* queue) const;
    // Removes every block that satisfies `wanted`, after calling visitor(const Entry&) for it; the visitor may throw.
    template <class Wanted, class Visitor>
    void take_all(Wanted&& wanted, Visitor&& visitor);

    // Checks that the lists are linked and ordered; for tests.
    [[nodiscard]] bool validate() const;

private:
    static constexpr uint32_t looked_at_max = 8;  // how many blocks of one queue take_of and take_any examine
    static constexpr uint64_t first_chunk = 64;  // entries

    struct List {
        const driver::Queue* queue = nullptr;  // null: the common, unordered list of all queues without a list
        Entry* first = nullptr;
        Entry* last = nullptr;
    };
    struct Chunk {
        std::unique_ptr<std::byte[]> memory;
        uint64_t entries = 0;
        uint64_t made = 0;
    };

    [[nodiscard]] static Lease lease_of(const Entry& entry);
    [[nodiscard]] static bool waits_only_for(const Entry& entry, const driver::Queue* queue);
    [[nodiscard]] List& list_of(const driver::Queue* queue) noexcept;
    [[nodiscard]] Entry* make_entry() noexcept;
    void recycle(Entry* entry) noexcept;
    void link(Entry* entry) noexcept;
    static void unlink(List& list, Entry* entry) noexcept;
    // True when the block need not wait any more. Otherwise moves it to the list of the timepoint that it waits for next.
    [[nodiscard]] bool advance(Entry* entry) noexcept;

    std::vector<List> lists_;
    List others_;
    std::vector<Chunk> chunks_;  // each larger than the one before
    Entry* spare_ = nullptr;  // linked by next
    uint64_t capacity_ = 0;
    uint64_t size_ = 0;
    uint64_t last_number_ = 0;
};

template <class TakeBack>
uint32_t PendingBlocks::drain(uint32_t count, TakeBack&& take_back) noexcept {
    uint32_t drained = 0;
    if (size_ == 0)
        return drained;
    const auto drain_entry = [&](List& list, Entry* entry) {
        unlink(list, entry);
        if (!advance(entry))
            return;
        const Block block = entry->block;
        recycle(entry);
        take_back(block);
        ++drained;
    };
    // Uses indices, because advance() may add a list.
    for (size_t index = 0; index < lists_.size() && drained < count; ++index) {
        const uint64_t completed = lists_[index].queue->completed();
        for (Entry* entry; drained < count && (entry = lists_[index].first) && entry->until.value <= completed;)
            drain_entry(lists_[index], entry);
    }
    for (Entry *entry = others_.first, *next = nullptr; entry && drained < count; entry = next) {
        next = entry->next;
        if (entry->until.is_complete())
            drain_entry(others_, entry);
    }
    return drained;
}

template <class Fits>
std::optional<Lease> PendingBlocks::take_of(const driver::Queue* queue, Fits&& fits) {
    for (List& list : lists_) {
        if (list.queue != queue)
            continue;
        uint32_t looked_at = 0;
        for (Entry* entry = list.last; entry && looked_at < looked_at_max; entry = entry->previous, ++looked_at) {
            if (!waits_only_for(*entry, queue) || !fits(entry->block))
                continue;
            Lease lease = lease_of(*entry);
            unlink(list, entry);
            recycle(entry);
            return lease;
        }
    }
    return std::nullopt;
}

template <class Fits>
std::optional<Lease> PendingBlocks::take_any(Fits&& fits) {
    List* list_of_oldest = nullptr;
    Entry* oldest = nullptr;
    for (List& list : lists_) {
        uint32_t looked_at = 0;
        for (Entry* entry = list.first; entry && looked_at < looked_at_max; entry = entry->next, ++looked_at) {
            if ((oldest && oldest->number < entry->number) || !fits(entry->block))
                continue;
            oldest = entry;
            list_of_oldest = &list;
        }
    }
    if (!oldest)
        return std::nullopt;
    Lease lease = lease_of(*oldest);
    unlink(*list_of_oldest, oldest);
    recycle(oldest);
    return lease;
}

template <class Wanted, class Visitor>
void PendingBlocks::take_all(Wanted&& wanted, Visitor&& visitor) {
    const auto take_from = [&](List& list) {
        for (Entry *entry = list.first, *next = nullptr; entry; entry = next) {
            next = entry->next;
            if (!wanted(entry->block))
                continue;
            visitor(static_cast<const Entry&>(*entry));
            unlink(list, entry);
            recycle(entry);
        }
    };
    for (List& list : lists_)
        take_from(list);
    take_from(others_);
}

}  // namespace polder::memory
