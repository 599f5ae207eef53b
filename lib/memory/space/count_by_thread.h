// CountByThread: a count that many threads change often and that is rarely read.
//
// Each thread with a number below 16 (thread_number.h) has its own part, so that it changes the count without an atomic
// read-modify-write. Threads with higher numbers share 16 other parts. Any thread. A thread that reads the sum after it has
// synchronized with another thread sees at least the changes that the other thread made before.
#pragma once

#include <base/thread_number.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace polder::memory {

class CountByThread {
public:
    void add(int64_t count) noexcept {
        const uint32_t thread = thread_number();
        if (thread >= own_parts) [[unlikely]] {
            parts_[own_parts + thread % own_parts].count.fetch_add(count, std::memory_order_release);
            return;
        }
        std::atomic<int64_t>& mine = parts_[thread].count;  // no other thread writes this part
        mine.store(mine.load(std::memory_order_relaxed) + count, std::memory_order_release);
    }
    [[nodiscard]] int64_t sum() const noexcept {
        int64_t all = 0;
        for (const Part& part : parts_)
            all += part.count.load(std::memory_order_acquire);
        return all;
    }
    // The set of the parts that are not zero, one bit for each part.
    [[nodiscard]] uint32_t nonzero_parts() const noexcept {
        uint32_t parts = 0;
        for (uint32_t i = 0; i < 2 * own_parts; ++i)
            if (parts_[i].count.load(std::memory_order_acquire) != 0)
                parts |= uint32_t{1} << i;
        return parts;
    }

private:
    static constexpr uint32_t own_parts = 16;
    struct alignas(64) Part {
        std::atomic<int64_t> count{0};
    };
    std::array<Part, size_t{2} * own_parts> parts_;
};

}  // namespace polder::memory
