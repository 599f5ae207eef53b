// PairedTimes: how much longer one piece of code takes than another, from times that were measured in pairs.
//
// Both codes of a pair do the same amount of neighbouring work, one right after the other, so that both meet about the same data, caches and other
// programs. The first one finds colder caches, so each code is first in half of the pairs; the logarithm of the ratio is the mean of both halves' averages.
// Which code of the next pair is first is random, because launches may alternate between data as regularly as pairs would alternate.
//
// The sum of the times decides, so a pair counts as much as its work takes: the less of both times, which an interruption does not make longer, after the rival's was
// divided by the plain average, so that the weight does not depend on the ratio.
// Without that, a form wins that is faster in many short launches and slower in the few that take most of the time.
//
// An average is that of the middle half of the sorted logarithms (a trimmed mean), so it hardly changes when the system interrupts some of the pairs, and is
// between the two values where there are two kinds of pairs, as a median would not be. Its standard error is that of the same logarithms with the
// other quarters replaced by the first and the last of the middle ones (R. Wilcox, Introduction to Robust Estimation, 3.3), for as many pairs of equal
// weight as have this variation of weights (L. Kish, Survey Sampling, 11.7). One thread at a time.
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
    [[nodiscard]] First next() const {
        if (counts_[0] != counts_[1])
            return counts_[0] < counts_[1] ? First::current : First::rival;
        return random(pairs() + 1);
    }
    [[nodiscard]] static First random(uint64_t number) {
        // A multiplicative hash.
        return (number * 0x9e3779b97f4a7c15 >> 40 & 1) == 0 ? First::current : First::rival;
    }

    void add(First first, float current_ns, float rival_ns) {
        size_t& count = counts_[static_cast<size_t>(first)];
        if (count < pairs_max / 2 && current_ns > 0 && rival_ns > 0)
            pairs_[static_cast<size_t>(first)][count++] = {std::log(rival_ns / current_ns), current_ns, rival_ns, 1};
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
    // Three quarters of the pairs, and of the work, have a greater ratio.
    [[nodiscard]] float lower_ratio() const {
        if (counts_[0] == 0 || counts_[1] == 0)
            return 1;
        return std::exp((average(0).low + average(1).low) / 2);
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
    // Pairs of so few do not show how much they vary.
    static constexpr float least_pairs = 3.5f;

    struct Pair {
        float log = 0, current_ns = 0, rival_ns = 0, weight = 1;
    };
    using Pairs = std::array<Pair, pairs_max / 2>;
    struct Average {
        float log = 0, error = 0, low = 0;  // low: the first one of the middle half
    };

    [[nodiscard]] Average average(size_t half) const {
        Pairs sorted = pairs_[half];
        const std::span pairs(sorted.data(), counts_[half]);
        std::ranges::sort(pairs, {}, &Pair::log);
        const Average plain = average(pairs);
        for (Pair& pair : pairs)
            pair.weight = std::min(pair.current_ns, pair.rival_ns / std::exp(plain.log));
        Average weighted = average(pairs);
        weighted.low = std::min(weighted.low, plain.low);
        return weighted;
    }

    [[nodiscard]] static Average average(std::span<const Pair> pairs) {
        float weight = 0, squared_weights = 0;
        for (const Pair& pair : pairs) {
            weight += pair.weight;
            squared_weights += pair.weight * pair.weight;
        }
        float before = 0, sum = 0, low = pairs.back().log, high = pairs.back().log;
        for (const Pair& pair : pairs) {
            const float after = before + pair.weight;
            const float kept = std::min(after, 0.75f * weight) - std::max(before, 0.25f * weight);
            // Sums of equal weights are rounded.
            if (before <= 0.2501f * weight)
                low = pair.log;
            if (before < 0.7499f * weight)
                high = pair.log;
            sum += std::max(kept, 0.0f) * pair.log;
            before = after;
        }
        const auto between = [&](const Pair& pair) { return std::clamp(pair.log, low, high); };
        float mean = 0, squares = 0;
        for (const Pair& pair : pairs)
            mean += pair.weight * between(pair) / weight;
        for (const Pair& pair : pairs)
            squares += pair.weight * (between(pair) - mean) * (between(pair) - mean) / weight;
        const float n = weight * weight / squared_weights;
        const float error = n < least_pairs ? std::numeric_limits<float>::infinity() : 2 * std::sqrt(squares / (n - 1));
        return {2 * sum / weight, error, low};
    }

    std::array<Pairs, 2> pairs_{};  // in which the current code, and the rival, was first
    std::array<size_t, 2> counts_{};
    float least_ = std::numeric_limits<float>::max();
    float sum_ns_ = 0;
};

}  // namespace polder::devices
