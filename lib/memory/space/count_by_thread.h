// CountByThread: a count that many threads change all the time and that is rarely read.
//
// A part for each of the first threads, so that changing the count takes no atomic operation there. Numbers of threads are not used again,
// so the later threads, which may be all that run, share as many parts. Any thread. A thread that reads the sum after it has
// synchronized with another thread sees at least that thread's changes until then.
#pragma once

#include <base/thread_number.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace polder::memory {

class CountByThread {
public:
    void add(int64_t count) noexcept {
        const uint32_t thread = thread_number();
        std::atomic<int64_t>& mine = parts_[std::min(thread, own_parts + thread % own_parts)].count;
        if (thread < own_parts) [[likely]]  // no other thread writes this part
            mine.store(mine.load(std::memory_order_relaxed) + count, std::memory_order_release);
        else
            mine.fetch_add(count, std::memory_order_release);
    }
    [[nodiscard]] int64_t sum() const noexcept {
        int64_t all = 0;
        for (const Part& part : parts_)
            all += part.count.load(std::memory_order_acquire);
        return all;
    }
    // The parts that are not zero, as bits.
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
