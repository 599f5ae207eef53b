// The implementation of Ledger: a table of counters for each pair of the domain's spaces. There are several copies of the table, so that
// threads rarely share a cache line. A query adds up the copies. Any thread; no lock.
#pragma once

#include <memory/ledger.h>

#include <array>
#include <atomic>
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
            add(from, to, bytes);
    }
    // The same, for bytes that a command needed.
    void add_moved_as_needed(SpaceId from, SpaceId to, ByteCount bytes) noexcept {
        if (from != to)
            add(from, to, bytes).needed.fetch_add(bytes.value, std::memory_order_relaxed);
    }
    // Counts one copy of `bytes` within `space` that no command needed.
    void add_gathered(SpaceId space, ByteCount bytes) noexcept { add(space, space, bytes); }
    void add_needed(SpaceId from, SpaceId to, ByteCount bytes) noexcept;

    [[nodiscard]] std::vector<Entry> entries() const override;
    [[nodiscard]] uint64_t moved_bytes() const override;
    [[nodiscard]] uint64_t gathered_bytes() const override;
    [[nodiscard]] uint64_t needed_bytes() const override;
    void reset() override;

private:
    static constexpr uint32_t copies = 4;
    struct Counters {
        std::atomic<uint64_t> transfers{0};
        std::atomic<uint64_t> moved{0};
        std::atomic<uint64_t> needed{0};
    };
    [[nodiscard]] size_t pair(SpaceId from, SpaceId to) const {
        return size_t{index_[from.value]} * spaces_.size() + index_[to.value];
    }
    Counters& add(SpaceId from, SpaceId to, ByteCount bytes) noexcept;
    [[nodiscard]] Counters& mine(SpaceId from, SpaceId to) noexcept;
    [[nodiscard]] Entry sum(SpaceId from, SpaceId to) const;
    template <class F>
    void for_each_pair(F&& f) const;

    std::vector<SpaceId> spaces_;  // ascending
    std::array<uint8_t, SpaceId::max_spaces> index_{};  // in spaces_
    size_t stride_;  // counters in one copy, rounded up to whole cache lines
    std::unique_ptr<Counters[]> counters_;
};

}  // namespace polder::memory
