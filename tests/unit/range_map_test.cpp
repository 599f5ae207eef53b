// The range map against one state per byte.
#include "residency/range_map.h"

#include <gtest/gtest.h>
#include <random>

namespace polder::memory {
namespace {

struct Number {
    int value = 0;
    bool absorb(const Number& next) { return value == next.value; }
};

std::vector<int> bytes_of(const RangeMap<Number>& map) {
    std::vector<int> bytes;
    map.visit({0, map.size().value}, [&](ByteRange range, const Number& number) {
        EXPECT_EQ(range.begin, bytes.size());
        bytes.insert(bytes.end(), range.size(), number.value);
    });
    return bytes;
}

TEST(RangeMap, BeginsAsOnePiece) {
    RangeMap<Number> map{ByteCount{100}, {7}};
    EXPECT_EQ(map.pieces(), 1u);
    EXPECT_EQ(bytes_of(map), std::vector<int>(100, 7));
}

TEST(RangeMap, SplitsAtTheEndsAndMergesAgain) {
    RangeMap<Number> map{ByteCount{100}, {0}};
    map.update({10, 20}, [](ByteRange, Number& number) { number.value = 1; });
    EXPECT_EQ(map.pieces(), 3u);
    map.update({90, 100}, [](ByteRange, Number& number) { number.value = 2; });
    EXPECT_EQ(map.pieces(), 4u);
    map.update({0, 100}, [](ByteRange, Number& number) { number.value = 3; });
    EXPECT_EQ(map.pieces(), 1u);
}

TEST(RangeMap, VisitsClippedPieces) {
    RangeMap<Number> map{ByteCount{100}, {0}};
    map.update({10, 20}, [](ByteRange, Number& number) { number.value = 1; });
    std::vector<ByteRange> seen;
    map.visit({15, 30}, [&](ByteRange range, const Number&) { seen.push_back(range); });
    EXPECT_EQ(seen, (std::vector<ByteRange>{{15, 20}, {20, 30}}));
}

TEST(RangeMap, AgreesWithAStatePerByte) {
    constexpr uint64_t size = 97;
    for (uint64_t seed = 0; seed < 2000; ++seed) {
        std::mt19937_64 random{seed};
        const auto below = [&](uint64_t limit) { return random() % limit; };
        RangeMap<Number> map{ByteCount{size}, {0}};
        std::vector<int> model(size, 0);
        for (int step = 0; step < 40; ++step) {
            std::vector<ByteRange> ranges;
            const uint64_t most = below(4) == 0 ? 20 : 1;
            for (uint64_t at = below(size), count = 0; at < size && count < most; ++count) {
                const uint64_t end = std::min(size, at + 1 + below(most == 1 ? size : 8));
                ranges.push_back({at, end});
                at = end + below(5);
            }
            const int value = static_cast<int>(below(3));
            map.update(ranges, [&](ByteRange, Number& number) { number.value = value; });
            for (const ByteRange& range : ranges)
                std::fill(model.begin() + static_cast<ptrdiff_t>(range.begin),
                          model.begin() + static_cast<ptrdiff_t>(range.end), value);
            ASSERT_TRUE(map.validate());
            ASSERT_EQ(bytes_of(map), model) << "seed " << seed << " step " << step;
            size_t changes = 1;
            for (uint64_t i = 1; i < size; ++i)
                changes += model[i] != model[i - 1];
            ASSERT_EQ(map.pieces(), changes) << "seed " << seed << " step " << step;
        }
    }
}

} // namespace
} // namespace polder::memory
