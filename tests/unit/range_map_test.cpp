// The range map against one state per byte.
#include "residency/range_map.h"
#include "support/effort.h"

#include <algorithm>
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

// Enough pieces for many leaves, which are halved, emptied and joined.
TEST(RangeMap, AgreesWithAStatePerByteInThousandsOfPieces) {
    constexpr uint64_t size = 6000;
    size_t most_pieces = 0;
    for (uint64_t seed = 0; seed < test::seeds(16); ++seed) {
        std::mt19937_64 random{seed};
        const auto below = [&](uint64_t limit) { return random() % limit; };
        RangeMap<Number> map{ByteCount{size}, {0}};
        std::vector<int> model(size, 0);
        for (int step = 0; step < 400; ++step) {
            std::vector<ByteRange> ranges;
            // Rows everywhere, then few changes, then long ranges that join much.
            const uint64_t most = step % 80 < 2 ? 1000 : 1 + below(3);
            const uint64_t longest = step % 80 > 60 ? 1 + below(size) : 3;
            for (uint64_t at = below(most == 1000 ? 5 : size); at < size && ranges.size() < most;
                 at = ranges.back().end + 1 + below(6))
                ranges.push_back({at, std::min(size, at + 1 + below(longest))});
            const int value = static_cast<int>(below(4));
            map.update(ranges, [&](ByteRange, Number& number) { number.value = value; });
            for (const ByteRange& range : ranges)
                std::fill(model.begin() + static_cast<ptrdiff_t>(range.begin),
                          model.begin() + static_cast<ptrdiff_t>(range.end), value);
            if (step % 100 == 99)
                map.sweep([](ByteRange, Number& number) { number.value /= 2; });
            if (step % 100 == 99)
                for (int& each : model)
                    each /= 2;
            ASSERT_TRUE(map.validate()) << "seed " << seed << " step " << step;
            ASSERT_EQ(bytes_of(map), model) << "seed " << seed << " step " << step;
            size_t changes = 1;
            for (uint64_t i = 1; i < size; ++i)
                changes += model[i] != model[i - 1];
            ASSERT_EQ(map.pieces(), changes) << "seed " << seed << " step " << step;
            most_pieces = std::max(most_pieces, changes);
            const uint64_t begin = below(size), end = begin + below(size - begin);
            std::vector<int> part;
            map.visit({begin, end}, [&](ByteRange range, const Number& number) {
                ASSERT_EQ(range.begin, begin + part.size());
                part.insert(part.end(), range.size(), number.value);
            });
            ASSERT_TRUE(std::equal(part.begin(), part.end(), model.begin() + static_cast<ptrdiff_t>(begin),
                                   model.begin() + static_cast<ptrdiff_t>(end)));
        }
    }
    EXPECT_GT(most_pieces, 1000u);
}

// Counts how often states are copied or moved.
struct Counted {
    static inline uint64_t moves = 0;
    int value = 0;
    Counted() = default;
    Counted(const Counted& other) : value(other.value) { ++moves; }
    Counted(Counted&& other) noexcept : value(other.value) { ++moves; }
    Counted& operator=(const Counted&) = delete;
    Counted& operator=(Counted&& other) noexcept {
        value = other.value;
        ++moves;
        return *this;
    }
    ~Counted() = default;
    bool absorb(const Counted& next) { return value == next.value; }
};

// States that an update of a part of one piece moves, on average, in a map of `pieces`.
uint64_t moves_of_an_update(uint64_t pieces) {
    constexpr uint64_t piece = 64;
    RangeMap<Counted> map{ByteCount{pieces * piece}};
    for (uint64_t i = 1; i < pieces; i += 2)
        map.update(ByteRange::at(i * piece, ByteCount{piece}), [](ByteRange, Counted& state) { state.value = 1; });
    EXPECT_EQ(map.pieces(), pieces);
    std::mt19937_64 random{7};
    constexpr uint64_t updates = 2000;
    Counted::moves = 0;
    for (uint64_t i = 0; i < updates; ++i) {
        const ByteRange part = ByteRange::at(random() % pieces * piece + 8, ByteCount{16});
        map.prepare(part);
        map.merge({&part, 1});
    }
    EXPECT_EQ(map.pieces(), pieces);
    return Counted::moves / updates;
}

TEST(RangeMap, AnUpdateMovesAsManyStatesHoweverManyPiecesThereAre) {
    const uint64_t moves_of_few = moves_of_an_update(64);
    for (const uint64_t pieces : {256u, 1024u, 4096u, 65'536u})
        EXPECT_LE(moves_of_an_update(pieces), 2 * moves_of_few) << pieces;
}

// Piece by piece from either end, as the rows of a rectangle.
TEST(RangeMap, ManyPiecesAreMadeWithAFewMovesEach) {
    constexpr uint64_t pieces = 20'000;
    for (const bool is_upwards : {true, false}) {
        RangeMap<Counted> map{ByteCount{pieces}};
        Counted::moves = 0;
        for (uint64_t i = 0; i < pieces / 2; ++i) {
            const uint64_t at = 2 * (is_upwards ? i : pieces / 2 - 1 - i);
            map.update({at, at + 1}, [](ByteRange, Counted& state) { state.value = 1; });
        }
        EXPECT_EQ(map.pieces(), pieces);
        EXPECT_LE(Counted::moves, 200 * pieces);
        map.update({0, pieces}, [](ByteRange, Counted& state) { state.value = 2; });
        EXPECT_EQ(map.pieces(), 1u);
    }
}

} // namespace
} // namespace polder::memory
