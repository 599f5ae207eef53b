// Shortage: what one memory space remembers from when storages were first evicted from it.
//
// Until then the uses of memory are not recorded, so that commands take no longer. Any thread.
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
    // Counts the uses of memory here; later uses have higher numbers.
    [[nodiscard]] uint64_t next_use() { return uses_.fetch_add(1, std::memory_order_relaxed) + 1; }

    // Bytes that were evicted have memory here again. Reports once (POCL_DEBUG=memory) when that is most of what the memory
    // is used for.
    void count_returned(uint64_t bytes);

private:
    const Space& space_;
    std::atomic<bool> has_begun_{false};
    std::atomic<uint64_t> uses_{0};
    std::atomic<uint64_t> returned_bytes_{0};
    std::atomic<bool> is_reported_{false};
};

}  // namespace polder::memory
