// PairedTimes: how much longer one piece of code takes than another, from times that were measured in pairs.
//
// Both codes of a pair do the same amount of neighbouring work, one right after the other, so that both meet about the same data, caches and other
// programs. The first one finds colder caches, so each code is first in half of the pairs; the logarithm of the ratio is the mean of both halves' averages.
// Which code of the next pair is first is random, because launches may alternate between data as regularly as pairs would alternate.
//
// An average is that of the middle half of the sorted logarithms (a trimmed mean), so it hardly changes when the system interrupts some of the pairs, and is
// between the two values where there are two kinds of pairs, as a median would not be. Its standard error is that of the same logarithms with the
// other quarters replaced by the first and the last of the middle ones (R. Wilcox, Introduction to Robust Estimation, 3.3). One thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>

namespace polder::devices {

class PairedTimes {
public:
    enum class First : uint8_t { current, rival };
    // Which code runs first in the next pair.
    [[nodiscard]] First next() const {
        if (counts_[0] != counts_[1])
            return counts_[0] < counts_[1] ? First::current : First::rival;
        // A multiplicative hash.
        const uint64_t bits = (pairs() + 1) * 0x9e3779b97f4a7c15;
        return (bits >> 40 & 1) == 0 ? First::current : First::rival;
    }

    void add(First first, float current_ns, float rival_ns) {
        size_t& count = counts_[static_cast<size_t>(first)];
        if (count < pairs_max / 2 && current_ns > 0 && rival_ns > 0)
            logs_[static_cast<size_t>(first)][count++] = std::log(rival_ns / current_ns);
        least_ = std::min(least_, rival_ns / std::max(current_ns, 1.0f));
        sum_ns_ += current_ns + rival_ns;
    }

    // The rival's time as a part of the current code's, and ratios that are so many standard errors below and above it; 1 without pairs of both halves.
    struct Bounds {
        float low = 1, ratio = 1, high = 1;
    };
    [[nodiscard]] Bounds bounds(float errors) const {
        if (counts_[0] == 0 || counts_[1] == 0)
            return {};
        const Average halves[] = {average(0), average(1)};
        const float log = (halves[0].log + halves[1].log) / 2;
        const float error = errors * std::max(least_error, std::hypot(halves[0].error, halves[1].error) / 2);
        return {std::exp(log - error), std::exp(log), std::exp(log + error)};
    }
    [[nodiscard]] float ratio() const { return bounds(0).ratio; }
    // Three quarters of the pairs have a greater ratio.
    [[nodiscard]] float lower_ratio() const {
        if (counts_[0] == 0 || counts_[1] == 0)
            return 1;
        return std::exp((sorted(0)[counts_[0] / 4] + sorted(1)[counts_[1] / 4]) / 2);
    }
    // The least of all pairs' ratios: what the system interrupts does not make it larger.
    [[nodiscard]] float least_ratio() const { return least_; }
    [[nodiscard]] size_t pairs() const { return counts_[0] + counts_[1]; }
    [[nodiscard]] bool is_full() const { return pairs() == pairs_max; }
    [[nodiscard]] float sum_ns() const { return sum_ns_; }  // of both codes

    static constexpr size_t pairs_max = 256;

private:
    // Clocks count in steps, so times that are all the same are not exact.
    static constexpr float least_error = 0.005f;

    using Logs = std::array<float, pairs_max / 2>;
    struct Average {
        float log, error;
    };

    [[nodiscard]] Logs sorted(size_t half) const {
        Logs logs = logs_[half];
        std::sort(logs.begin(), logs.begin() + static_cast<std::ptrdiff_t>(counts_[half]));
        return logs;
    }

    [[nodiscard]] Average average(size_t half) const {
        const Logs logs = sorted(half);
        const size_t count = counts_[half], trimmed = count / 4, kept = count - 2 * trimmed;
        const std::span middle = std::span(logs).subspan(trimmed, kept);
        const auto n = static_cast<float>(count), quarter = static_cast<float>(trimmed);
        const float sum = std::accumulate(middle.begin(), middle.end(), 0.0f);
        const float mean_of_all = (sum + quarter * (middle.front() + middle.back())) / n;
        const auto square = [&](float log) { return (log - mean_of_all) * (log - mean_of_all); };
        float squares = quarter * (square(middle.front()) + square(middle.back()));
        for (const float log : middle)
            squares += square(log);
        const float deviation = std::sqrt(squares / std::max(n - 1, 1.0f));
        const float error = deviation * std::sqrt(n) / static_cast<float>(kept);
        return {sum / static_cast<float>(kept), count < 4 ? std::numeric_limits<float>::infinity() : error};
    }

    std::array<Logs, 2> logs_{};  // of the ratios of pairs in which the current code, and the rival, was first
    std::array<size_t, 2> counts_{};
    float least_ = std::numeric_limits<float>::max();
    float sum_ns_ = 0;
};

}  // namespace polder::devices
