// The implementation of Ledger: a table of counters for each pair of the domain's spaces. There are several copies of the table. Each thread
// with a number below 16 (thread_number.h) has its own copy, so that it counts without an atomic read-modify-write. Other threads share four
// copies, and so do all threads of a domain with many spaces, whose tables are large. A query adds up the copies. Any thread; no lock.
#pragma once

#include <base/thread_number.h>
#include <memory/ledger.h>

#include <array>
#include <atomic>
#include <cassert>
#include <memory>
#include <span>

namespace polder::memory {

class LedgerImpl final : public Ledger {
public:
    // Transfers between other spaces are never counted.
    explicit LedgerImpl(std::span<const SpaceId> spaces);

    // Counts one transfer of `bytes`. Counts nothing when `from` and `to` are equal.
    void add_moved(SpaceId from, SpaceId to, ByteCount bytes) noexcept {
        if (from != to)
            add(thread_number(), from, to, bytes);
    }
    // The same, for bytes that a command needed.
    void add_moved_as_needed(SpaceId from, SpaceId to, ByteCount bytes) noexcept {
        if (from == to)
            return;
        const uint32_t thread = thread_number();
        Counters& counters = add(thread, from, to, bytes);
        count(thread, counters.needed, bytes.value);
    }
    // Counts one copy of `bytes` within `space` that no command needed.
    void add_gathered(SpaceId space, ByteCount bytes) noexcept { add(thread_number(), space, space, bytes); }
    void add_needed(SpaceId from, SpaceId to, ByteCount bytes) noexcept;

    [[nodiscard]] std::vector<Entry> entries() const override;
    [[nodiscard]] uint64_t moved_bytes() const override;
    [[nodiscard]] uint64_t gathered_bytes() const override;
    [[nodiscard]] uint64_t needed_bytes() const override;
    void reset() override;

private:
    static constexpr uint32_t shared_copies = 4;
    static constexpr size_t spaces_with_own_copies = 8;  // the most
    struct Counters {
        std::atomic<uint64_t> transfers{0};
        std::atomic<uint64_t> moved{0};
        std::atomic<uint64_t> needed{0};
    };
    [[nodiscard]] uint32_t copies() const { return own_copies_ + shared_copies; }
    [[nodiscard]] size_t pair(SpaceId from, SpaceId to) const {
        return size_t{index_[from.value]} * spaces_.size() + index_[to.value];
    }
    // `thread` is the number of the calling thread.
    Counters& add(uint32_t thread, SpaceId from, SpaceId to, ByteCount bytes) noexcept {
        Counters& counters = mine(thread, from, to);
        count(thread, counters.transfers, 1);
        count(thread, counters.moved, bytes.value);
        return counters;
    }
    void count(uint32_t thread, std::atomic<uint64_t>& counter, uint64_t more) noexcept {
        if (thread < own_copies_) [[likely]]  // no other thread writes it
            counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
        else
            counter.fetch_add(more, std::memory_order_relaxed);
    }
    [[nodiscard]] Counters& mine(uint32_t thread, SpaceId from, SpaceId to) noexcept {
        assert(spaces_[index_[from.value]] == from && spaces_[index_[to.value]] == to);
        const uint32_t copy = thread < own_copies_ ? thread : own_copies_ + thread % shared_copies;
        return counters_[stride_ * copy + pair(from, to)];
    }
    [[nodiscard]] Entry sum(SpaceId from, SpaceId to) const;
    template <class F>
    void for_each_pair(F&& f) const;

    std::vector<SpaceId> spaces_;  // ascending
    std::array<uint8_t, SpaceId::max_spaces> index_{};  // in spaces_
    uint32_t own_copies_;  // the copies of one thread each, which come before the shared ones
    size_t stride_;  // counters in one copy, rounded up to whole cache lines
    std::unique_ptr<Counters[]> counters_;
};

}  // namespace polder::memory
