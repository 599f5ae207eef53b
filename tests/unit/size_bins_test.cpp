// SizeBins against a set of {size, address}; PagedArray; Tally with threads that take shares.
#include <base/thread_number.h>
#include <memory/paged_array.h>
#include <memory/size_bins.h>
#include <memory/tally.h>

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <latch>
#include <numeric>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace polder::memory {
namespace {

struct World {
    struct Owned {
        uint64_t size = 0;  // 0: not in the bins
        uint64_t address = 0;
    };
    SizeBins bins;
    std::vector<Owned> blocks;
    std::set<std::pair<uint64_t, uint64_t>> model;

    void insert(uint32_t block, uint64_t size, uint64_t address) {
        blocks[block] = {size, address};
        ASSERT_TRUE(bins.insert(size, {address, block}));
        model.emplace(size, address);
    }
    void remove(uint32_t block) {
        const Owned gone = blocks[block];
        bins.remove(gone.size, gone.address);
        model.erase({gone.size, gone.address});
        blocks[block].size = 0;
    }
    [[nodiscard]] bool agrees_from(uint64_t size) const {
        const auto expected = model.lower_bound({size, 0});
        const uint64_t found = bins.smallest_from(size);
        if (expected == model.end())
            return found == 0;
        return found == expected->first && bins.lowest(found).address == expected->second;
    }
    [[nodiscard]] bool has_all() const {
        for (uint32_t block = 0; block < blocks.size(); ++block)
            if (blocks[block].size != 0 && !bins.has(blocks[block].size, {blocks[block].address, block}))
                return false;
        // In the order of addresses, as searches for an alignment ask for them.
        for (uint64_t size = bins.smallest_from(1); size != 0; size = bins.smallest_from(size + SizeBins::unit)) {
            const auto of_size = [size](uint64_t address) { return std::pair{size, address}; };
            for (auto next = model.lower_bound(of_size(0)); next != model.end() && next->first == size;) {
                const uint64_t from = next->second;
                const auto lowest =
                    bins.lowest_of(size, [&](const SizeBins::Entry& entry) { return entry.address >= from; });
                if (!lowest || lowest->address != from)
                    return false;
                for (uint64_t step = 1 + from / 512 % 64; step-- > 0 && next != model.end();)
                    ++next;
            }
            if (bins.lowest_of(size, [](const SizeBins::Entry&) { return false; }))
                return false;
        }
        if (!bins.validate())
            return false;
        return bins.size() == model.size() && bins.largest() == (model.empty() ? 0 : model.rbegin()->first);
    }
};

TEST(SizeBins, HoldsMultiplesOf512BytesUpTo2MiB) {
    EXPECT_TRUE(SizeBins::holds(512));
    EXPECT_TRUE(SizeBins::holds(uint64_t{2} << 20));
    EXPECT_FALSE(SizeBins::holds((uint64_t{2} << 20) + 512));
    EXPECT_FALSE(SizeBins::holds(513));
    EXPECT_FALSE(SizeBins::holds(0));
}

TEST(SizeBins, FindsNothingWhenEmpty_AndNothingAboveTheLargest) {
    World world;
    world.blocks.resize(1);
    EXPECT_EQ(world.bins.smallest_from(1), 0u);
    EXPECT_EQ(world.bins.largest(), 0u);
    world.insert(0, 4096, 512);
    EXPECT_EQ(world.bins.smallest_from(4097), 0u);
    EXPECT_EQ(world.bins.smallest_from(uint64_t{1} << 40), 0u);
    EXPECT_EQ(world.bins.smallest_from(1), 4096u);
}

// Few sizes, so that bins become large; and all sizes, so that both levels of the bit maps are used.
TEST(SizeBins, ReturnsTheSmallestSizeThenTheLowestAddress_AsASetDoes) {
    for (const uint32_t sizes : {3u, SizeBins::bin_count}) {
        World world;
        world.blocks.resize(600);
        std::mt19937_64 random(sizes);
        for (int step = 0; step < 20'000; ++step) {
            const auto block = static_cast<uint32_t>(random() % world.blocks.size());
            if (world.blocks[block].size != 0)
                world.remove(block);
            else
                world.insert(block, (1 + random() % sizes) * SizeBins::unit, random() % (uint64_t{1} << 31) * 512);
            ASSERT_TRUE(world.agrees_from(1 + random() % ((sizes + 2) * SizeBins::unit))) << step;
        }
        EXPECT_TRUE(world.has_all());
    }
}

// So many blocks that leaves split, become larger than usual, and fall empty; addresses come in every order.
TEST(SizeBins, ManyBlocksOfOneSizeStayInOrder) {
    constexpr uint32_t count = 20'000;
    constexpr uint64_t size = 4096;
    enum class Order : uint8_t { rising, falling, random };
    for (const Order order : {Order::rising, Order::falling, Order::random}) {
        World world;
        world.blocks.resize(count);
        std::vector<uint32_t> numbers(count);
        std::iota(numbers.begin(), numbers.end(), 0);
        std::mt19937_64 random(5);
        if (order == Order::falling)
            std::ranges::reverse(numbers);
        if (order == Order::random)
            std::ranges::shuffle(numbers, random);
        for (const uint32_t number : numbers)
            world.insert(number, size, uint64_t{number} * 8192);
        ASSERT_TRUE(world.bins.validate());
        std::ranges::shuffle(numbers, random);
        const auto remove_lowest = [&] { world.remove(world.bins.lowest(size).block); };
        for (uint32_t i = 0; world.bins.size() > count / 16; ++i) {
            if (world.blocks[numbers[i]].size != 0)
                world.remove(numbers[i]);
            if (i % 4 == 0)
                remove_lowest();
            ASSERT_TRUE(world.agrees_from(1));
        }
        ASSERT_TRUE(world.has_all());
        while (world.bins.size() != 0) {
            ASSERT_TRUE(world.agrees_from(1));
            remove_lowest();
        }
        EXPECT_EQ(world.bins.smallest_from(1), 0U);
        world.insert(0, size, 512);
        EXPECT_TRUE(world.has_all());
    }
}

// Addresses on both sides of the first one, whose distance does not fit into a key or is no multiple of 512 bytes.
TEST(SizeBins, RefusesBlocksFartherThan1TiBFromTheFirst_OrBetweenItsUnits) {
    constexpr uint64_t first = (uint64_t{5} << 40) + 64, distance = uint64_t{1} << 40;
    SizeBins bins;
    ASSERT_TRUE(bins.insert(4096, {first, 0}));
    EXPECT_FALSE(bins.insert(4096, {first + distance - 512, 1}));
    EXPECT_FALSE(bins.insert(4096, {first - distance, 1}));
    EXPECT_FALSE(bins.insert(4096, {first + 256, 1}));
    EXPECT_FALSE(bins.insert(4096, {uint64_t{1} << 60, 1}));
    EXPECT_EQ(bins.size(), 1U);
    ASSERT_TRUE(bins.insert(4096, {first + distance - 1024, 1}));
    ASSERT_TRUE(bins.insert(4096, {first - distance + 512, 2}));
    EXPECT_EQ(bins.lowest(4096).address, first - distance + 512);
    bins.remove_lowest(4096);
    EXPECT_EQ(bins.lowest(4096).address, first);
    bins.remove_lowest(4096);
    EXPECT_EQ(bins.lowest(4096).address, first + distance - 1024);
    bins.remove_lowest(4096);
    EXPECT_TRUE(bins.validate());
    // When it is empty, the next block is the first one.
    ASSERT_TRUE(bins.insert(512, {3, 0}));
    EXPECT_EQ(bins.lowest(512).address, 3U);
}

TEST(PagedArray, ElementsKeepTheirPlacesWhileItGrows) {
    PagedArray<uint64_t> array;
    uint64_t* const first = &array.append();
    *first = 7;
    for (uint64_t index = 1; index < 1'000'000; ++index) {
        uint64_t& added = array.append();
        EXPECT_EQ(added, 0u);
        added = index;
    }
    EXPECT_EQ(&array[0], first);
    EXPECT_EQ(array.size(), 1'000'000u);
    for (uint64_t index = 1; index < 1'000'000; ++index)
        ASSERT_EQ(array[index], index);
}

// Two threads that allocate and free without a lock. Whether they meet is chance; the sums must be right either way.
void allocate_with_two_threads(Tally& tally, uint64_t bytes, std::vector<uint64_t>& refused) {
    refused.assign(2, 0);
    std::vector<std::thread> threads;
    for (uint32_t thread = 0; thread < 2; ++thread)
        threads.emplace_back([&tally, &refused, bytes, thread] {
            for (int round = 0; round < 100'000; ++round) {
                if (tally.allocate(bytes))
                    tally.free(bytes);
                else
                    ++refused[thread];
            }
        });
    for (std::thread& thread : threads)
        thread.join();
}

TEST(Tally, CountsOfManyThreadsAddUp) {
    Tally tally{ByteCount{uint64_t{1} << 40}};
    std::vector<uint64_t> refused;
    allocate_with_two_threads(tally, 4096, refused);
    EXPECT_EQ(tally.live(), 0u);
    EXPECT_EQ(tally.live_blocks(), 0u);
    Allocator::Statistics statistics;
    tally.fill(statistics);
    EXPECT_EQ(statistics.allocations, 200'000u);
    EXPECT_EQ(statistics.frees, 200'000u);
    EXPECT_EQ(refused[0] + refused[1], 0u);
}

// The first 16 threads have counts of their own; threads whose numbers differ by 16 share theirs.
TEST(Tally, ThreadsThatShareTheirCountsLoseNone) {
    constexpr uint32_t count = 50;
    Tally tally{ByteCount{uint64_t{1} << 40}};
    tally.begin_shares();
    std::latch all{count};  // so that no thread gets the number of another one
    std::atomic<uint64_t> allocations{0};
    std::vector<std::thread> threads;
    threads.reserve(count);
    for (uint32_t thread = 0; thread < count; ++thread)
        threads.emplace_back([&] {
            const uint32_t number = thread_number();
            all.arrive_and_wait();
            const uint64_t rounds = number == 16 || number == 32 ? 300'000 : 10;
            for (uint64_t round = 0; round < rounds; ++round) {
                static_cast<void>(tally.allocate(256));
                tally.free(256);
            }
            allocations += rounds;
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(tally.live(), 0u);
    Allocator::Statistics statistics;
    tally.fill(statistics);
    EXPECT_EQ(statistics.allocations, allocations);
    EXPECT_EQ(statistics.frees, allocations);
}

// What threads have taken ahead is given back before a request is refused, and the limit holds to the byte.
TEST(Tally, SharesOfThreadsNeitherExceedTheLimitNorUseItUp) {
    constexpr uint64_t limit = uint64_t{3} << 20;
    Tally tally{ByteCount{limit}};
    std::vector<uint64_t> refused;
    allocate_with_two_threads(tally, 4096, refused);
    EXPECT_EQ(refused[0] + refused[1], 0u);
    uint64_t blocks = 0;
    while (tally.allocate(4096) && blocks <= limit / 4096)
        ++blocks;
    EXPECT_EQ(blocks, limit / 4096);
    EXPECT_EQ(tally.live(), limit);
}

// Also when a thread has taken bytes ahead that are in no block.
TEST(Tally, WhatIsFreeIsComparedExactly) {
    constexpr uint64_t MiB = uint64_t{1} << 20;
    Tally tally{ByteCount{uint64_t{1} << 40}};
    tally.reserve(64 * MiB);
    const auto expect_free = [&](uint64_t free) {
        EXPECT_EQ(tally.free_bytes(), free);
        for (const uint64_t bytes : {uint64_t{0}, free / 2, free - 1, free, free + 1, 2 * free, 100 * MiB})
            EXPECT_EQ(tally.free_bytes_exceed(bytes), free > bytes) << bytes << " of " << free;
    };
    expect_free(64 * MiB);
    tally.begin_shares();
    ASSERT_TRUE(tally.allocate(4096));
    expect_free(64 * MiB - 4096);
    tally.free(4096);
    for (const uint64_t block : {uint64_t{4096}, 30 * MiB, 64 * MiB, 65 * MiB}) {
        ASSERT_TRUE(tally.allocate(block));
        expect_free(block < 64 * MiB ? 64 * MiB - block : 0);
        tally.free(block);
        expect_free(64 * MiB);
    }
}

}  // namespace
}  // namespace polder::memory
