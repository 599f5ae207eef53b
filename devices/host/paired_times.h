// PairedTimes: how much longer one piece of code takes than another, from times that were measured in pairs.
//
// Both codes of a pair do the same amount of neighbouring work, one right after the other, so that both meet about the same data, caches and other
// programs. The first one finds colder caches, so each code is first in half of the pairs; the ratio is the geometric mean of the medians of
// both halves. A median hardly changes when the system interrupts some of the pairs. One thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace polder::devices {

class PairedTimes {
public:
    enum class First : uint8_t { current, rival };
    // Which code runs first in the next pair.
    [[nodiscard]] First next() const { return counts_[0] <= counts_[1] ? First::current : First::rival; }

    void add(First first, float current_ns, float rival_ns) {
        size_t& count = counts_[static_cast<size_t>(first)];
        if (count < pairs_max / 2 && current_ns > 0 && rival_ns > 0)
            ratios_[static_cast<size_t>(first)][count++] = rival_ns / current_ns;
        least_ = std::min(least_, rival_ns / std::max(current_ns, 1.0f));
        sum_ns_ += current_ns + rival_ns;
    }

    // The rival's time as a part of the current code's; 1 without pairs of both halves.
    [[nodiscard]] float ratio() const {
        if (counts_[0] == 0 || counts_[1] == 0)
            return 1;
        return std::sqrt(median(0) * median(1));
    }
    // The least of all pairs' ratios: what the system interrupts does not make it larger.
    [[nodiscard]] float least_ratio() const { return least_; }
    [[nodiscard]] size_t pairs() const { return counts_[0] + counts_[1]; }
    [[nodiscard]] bool is_full() const { return pairs() == pairs_max; }
    [[nodiscard]] float sum_ns() const { return sum_ns_; }  // of both codes

    static constexpr size_t pairs_max = 128;

private:
    [[nodiscard]] float median(size_t half) const {
        std::array<float, pairs_max / 2> sorted = ratios_[half];
        const auto begin = sorted.begin();
        const auto middle = begin + static_cast<std::ptrdiff_t>(counts_[half] / 2);
        std::nth_element(begin, middle, begin + static_cast<std::ptrdiff_t>(counts_[half]));
        return *middle;
    }

    std::array<std::array<float, pairs_max / 2>, 2>
        ratios_{};  // of pairs in which the current code, and the rival, was first
    std::array<size_t, 2> counts_{};
    float least_ = std::numeric_limits<float>::max();
    float sum_ns_ = 0;
};

}  // namespace polder::devices
