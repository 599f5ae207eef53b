// Shortage: the order of the uses of one memory space since the first eviction there, and the counts of evictions and compactions.
//
// Before the first eviction, uses of memory are not recorded, so that commands are not slowed down. Any thread.
#pragma once

#include <memory/space.h>

#include <atomic>
#include <cstdint>

namespace polder::memory {

class Shortage {
public:
    explicit Shortage(const Space& space) : space_(space) {}

    [[nodiscard]] bool has_begun() const { return has_begun_.load(std::memory_order_relaxed); }
    void begin() { has_begun_.store(true, std::memory_order_relaxed); }
    // uses: how many uses of this memory were counted. next_use: counts a use and returns its number; later uses have higher numbers.
    [[nodiscard]] uint64_t uses() const { return uses_.load(std::memory_order_relaxed); }
    [[nodiscard]] uint64_t next_use() { return uses_.fetch_add(1, std::memory_order_relaxed) + 1; }

    // Counts evicted bytes that have memory here again. Reports once (POCL_DEBUG=memory) when they exceed a multiple of the memory's
    // size.
    void count_returned(uint64_t bytes);
    [[nodiscard]] bool has_returned() const { return returned_bytes_.load(std::memory_order_relaxed) != 0; }

    void count_compacted(uint64_t bytes) {
        compactions_.fetch_add(1, std::memory_order_relaxed);
        compacted_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    }
    void count_examined(uint64_t replicas) { examined_.fetch_add(replicas, std::memory_order_relaxed); }
    void count_evicted(uint64_t bytes) { evicted_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
    void count_written_back(uint64_t bytes) { written_back_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
    void count_owner_changes(uint32_t to_host, uint32_t to_device) {
        maps_.fetch_add(to_host, std::memory_order_relaxed);
        unmaps_.fetch_add(to_device, std::memory_order_relaxed);
    }
    [[nodiscard]] SpaceActivity activity() const {
        constexpr auto order = std::memory_order_relaxed;
        return {compactions_.load(order),
                ByteCount{compacted_bytes_.load(order)},
                ByteCount{evicted_bytes_.load(order)},
                ByteCount{written_back_bytes_.load(order)},
                ByteCount{returned_bytes_.load(order)},
                maps_.load(order),
                unmaps_.load(order),
                examined_.load(order)};
    }

private:
    const Space& space_;
    std::atomic<bool> has_begun_{false};
    std::atomic<uint64_t> uses_{0};
    std::atomic<uint64_t> returned_bytes_{0};
    std::atomic<bool> is_reported_{false};
    std::atomic<uint64_t> compactions_{0};
    std::atomic<uint64_t> compacted_bytes_{0};
    std::atomic<uint64_t> evicted_bytes_{0};
    std::atomic<uint64_t> written_back_bytes_{0};
    std::atomic<uint64_t> maps_{0};
    std::atomic<uint64_t> unmaps_{0};
    std::atomic<uint64_t> examined_{0};
};

}  // namespace polder::memory
