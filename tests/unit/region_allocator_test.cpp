#include <bufalloc/region_allocator.h>

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace polder {
namespace {

constexpr uint64_t KiB = 1024;
constexpr uint64_t MiB = 1024 * KiB;
constexpr Alignment byte_aligned{1};

RegionAllocator::Region region(uint64_t base, uint64_t size, uint64_t granularity = 64) {
    return {DeviceAddress{base}, ByteCount{size}, Alignment{granularity}};
}

TEST(RegionAllocator, WholeRegionInOneBlock_ThenNothingMore) {
    RegionAllocator allocator{region(0, MiB)};
    const auto block = allocator.allocate(ByteCount{MiB}, byte_aligned);
    ASSERT_TRUE(block);
    EXPECT_EQ(block->range(), (ByteRange{0, MiB}));
    EXPECT_FALSE(allocator.allocate(ByteCount{1}, byte_aligned));
    EXPECT_TRUE(allocator.validate());
    allocator.free(*block);
    EXPECT_TRUE(allocator.is_unused());
    EXPECT_TRUE(allocator.validate());
}

TEST(RegionAllocator, SizeIsRoundedUpToTheGranularity_AndZeroCountsAsOne) {
    RegionAllocator allocator{region(0, MiB, 128)};
    EXPECT_EQ(allocator.allocate(ByteCount{0}, byte_aligned)->size, ByteCount{128});
    EXPECT_EQ(allocator.allocate(ByteCount{1}, byte_aligned)->size, ByteCount{128});
    EXPECT_EQ(allocator.allocate(ByteCount{128}, byte_aligned)->size, ByteCount{128});
    EXPECT_EQ(allocator.allocate(ByteCount{129}, byte_aligned)->size, ByteCount{256});
    EXPECT_TRUE(allocator.validate());
}

TEST(RegionAllocator, GranularityOfOneByte_WastesNothing) {
    RegionAllocator allocator{region(3, 100, 1)};
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(allocator.allocate(ByteCount{1}, byte_aligned));
    EXPECT_FALSE(allocator.allocate(ByteCount{1}, byte_aligned));
    EXPECT_TRUE(allocator.validate());
}

TEST(RegionAllocator, ImpossibleSizesAreRefused) {
    RegionAllocator allocator{region(0, MiB)};
    EXPECT_FALSE(allocator.allocate(ByteCount{MiB + 1}, byte_aligned));
    EXPECT_FALSE(allocator.allocate(ByteCount{UINT64_MAX}, byte_aligned));
    EXPECT_FALSE(allocator.allocate(ByteCount{UINT64_MAX - 63}, Alignment{uint64_t{1} << 63}));
    EXPECT_TRUE(allocator.validate());
    EXPECT_EQ(allocator.statistics().largest_free, ByteCount{MiB});
}

TEST(RegionAllocator, EmptyAndTinyRegionsRefuseEverything) {
    for (const uint64_t size : {uint64_t{0}, uint64_t{1}, uint64_t{63}, uint64_t{100}}) {
        RegionAllocator allocator{region(7, size)};
        EXPECT_FALSE(allocator.allocate(ByteCount{1}, byte_aligned)) << size;
        EXPECT_TRUE(allocator.validate()) << size;
        EXPECT_EQ(allocator.statistics().capacity, ByteCount{0}) << size;
    }
}

TEST(RegionAllocator, RegionUpToTheEndOfTheAddressSpaceWorks) {
    RegionAllocator allocator{region(64, UINT64_MAX - 63)};
    const auto low = allocator.allocate(ByteCount{uint64_t{1} << 62}, Alignment{uint64_t{1} << 62});
    const auto high = allocator.allocate(ByteCount{uint64_t{1} << 62}, Alignment{uint64_t{1} << 63});
    ASSERT_TRUE(low && high);
    EXPECT_NE(low->offset, high->offset);
    EXPECT_TRUE(allocator.validate());
    allocator.free(*low);
    allocator.free(*high);
    EXPECT_TRUE(allocator.validate());
}

TEST(RegionAllocator, AlignmentIsOfTheAddress_NotOfTheOffset) {
    for (const uint64_t base : {uint64_t{0}, uint64_t{64}, uint64_t{4096 + 192}, uint64_t{1000003}}) {
        RegionAllocator allocator{region(base, 4 * MiB)};
        for (uint64_t alignment = 1; alignment <= MiB; alignment *= 2) {
            const auto block = allocator.allocate(ByteCount{100}, Alignment{alignment});
            ASSERT_TRUE(block) << base << " " << alignment;
            EXPECT_TRUE(Alignment{alignment}.divides(base + block->offset));
            ASSERT_TRUE(allocator.validate());
        }
    }
}

TEST(RegionAllocator, AlignmentLargerThanTheRegion_SucceedsOnlyWhereAnAddressHasIt) {
    RegionAllocator without{region(64, MiB)};
    EXPECT_FALSE(without.allocate(ByteCount{64}, Alignment{16 * MiB}));
    RegionAllocator with{region(16 * MiB - 64, MiB)};
    const auto block = with.allocate(ByteCount{64}, Alignment{16 * MiB});
    ASSERT_TRUE(block);
    EXPECT_EQ(block->offset, 64u);
    EXPECT_TRUE(with.validate());
}

TEST(RegionAllocator, OnlyFittingPlaceBehindPaddingIsFound) {
    // A block of 3 MiB at 1 MiB into an address grid of 2 MiB: exactly one aligned 2 MiB block in it.
    RegionAllocator allocator{region(MiB, 3 * MiB)};
    const auto block = allocator.allocate(ByteCount{2 * MiB}, Alignment{2 * MiB});
    ASSERT_TRUE(block);
    EXPECT_EQ(block->offset, MiB);
    EXPECT_TRUE(allocator.validate());
}

TEST(RegionAllocator, FreedNeighboursMergeInEveryOrder) {
    std::vector<size_t> order = {0, 1, 2, 3};
    do {
        RegionAllocator allocator{region(0, 4 * KiB)};
        std::vector<RegionAllocator::Block> blocks;
        for (int i = 0; i < 4; ++i)
            blocks.push_back(*allocator.allocate(ByteCount{KiB}, byte_aligned));
        for (const size_t i : order) {
            allocator.free(blocks[i]);
            ASSERT_TRUE(allocator.validate());
        }
        EXPECT_EQ(allocator.statistics().free_blocks, 1u);
        EXPECT_EQ(allocator.statistics().largest_free, ByteCount{4 * KiB});
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST(RegionAllocator, HoleOfExactlyTheSize_IsReusedThoughItLiesBetweenBins) {
    const ByteCount size{64 * 4097};  // within a bin, not at its edge
    RegionAllocator allocator{region(0, 16 * size.value)};
    std::vector<RegionAllocator::Block> blocks;
    while (const auto block = allocator.allocate(size, byte_aligned))
        blocks.push_back(*block);
    ASSERT_EQ(blocks.size(), 16u);
    for (size_t i = 0; i < blocks.size(); i += 2)
        allocator.free(blocks[i]);
    for (size_t i = 0; i < blocks.size(); i += 2)
        EXPECT_TRUE(allocator.allocate(size, byte_aligned)) << i;
    EXPECT_EQ(allocator.free_bytes(), ByteCount{0});
    EXPECT_TRUE(allocator.validate());
}

// Free blocks of one bin, all too small except the last one of its list.
TEST(RegionAllocator, ThoroughSearchFindsTheLastBlockOfABin_QuickSearchMayMissIt) {
    constexpr uint64_t fitting = 1030 * 64, small = 1024 * 64, apart = 64;
    RegionAllocator allocator{region(0, fitting + 100 * (small + apart) + apart)};
    std::vector<RegionAllocator::Block> holes = {*allocator.allocate(ByteCount{fitting}, byte_aligned)};
    static_cast<void>(allocator.allocate(ByteCount{apart}, byte_aligned));
    for (int i = 0; i < 100; ++i) {
        holes.push_back(*allocator.allocate(ByteCount{small}, byte_aligned));
        static_cast<void>(allocator.allocate(ByteCount{apart}, byte_aligned));
    }
    ASSERT_EQ(allocator.free_bytes(), ByteCount{0});
    for (const auto& hole : holes)
        allocator.free(hole);

    EXPECT_EQ(allocator.largest_free(), ByteCount{fitting});
    EXPECT_FALSE(allocator.allocate(ByteCount{fitting}, byte_aligned, RegionAllocator::Search::quick));
    const auto block = allocator.allocate(ByteCount{fitting}, byte_aligned);
    ASSERT_TRUE(block);
    EXPECT_EQ(block->offset, 0u);
    EXPECT_FALSE(allocator.allocate(ByteCount{small + 64}, byte_aligned));
    EXPECT_TRUE(allocator.allocate(ByteCount{small}, byte_aligned));
    EXPECT_TRUE(allocator.validate());
}

TEST(RegionAllocator, RefusedOnce_StillSucceedsWhenRoomComesBack) {
    RegionAllocator allocator{region(0, MiB)};
    const auto low = *allocator.allocate(ByteCount{512 * KiB}, byte_aligned);
    const auto high = *allocator.allocate(ByteCount{512 * KiB}, byte_aligned);
    allocator.free(low);
    for (int i = 0; i < 3; ++i)
        EXPECT_FALSE(allocator.allocate(ByteCount{512 * KiB + 64}, byte_aligned));
    allocator.free(high);
    EXPECT_TRUE(allocator.allocate(ByteCount{512 * KiB + 64}, byte_aligned));
    EXPECT_TRUE(allocator.validate());
}

TEST(RegionAllocator, NoCapOnBlocks_300000LiveAtOnce) {
    constexpr uint32_t count = 300'000;
    RegionAllocator allocator{region(0, uint64_t{count} * 64)};
    std::vector<RegionAllocator::Block> blocks;
    blocks.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
        const auto block = allocator.allocate(ByteCount{64}, byte_aligned);
        ASSERT_TRUE(block) << i;
        blocks.push_back(*block);
    }
    EXPECT_EQ(allocator.statistics().used_blocks, count);
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937{1});
    for (const auto& block : blocks)
        allocator.free(block);
    EXPECT_TRUE(allocator.validate());
    EXPECT_EQ(allocator.statistics().free_blocks, 1u);
}

TEST(RegionAllocator, FreeBlocksAreEnumerated) {
    RegionAllocator allocator{region(0, MiB)};
    const auto first = *allocator.allocate(ByteCount{KiB}, byte_aligned);
    static_cast<void>(allocator.allocate(ByteCount{KiB}, byte_aligned));
    allocator.free(first);
    std::vector<ByteRange> free;
    allocator.for_each_free(ByteCount{1}, [&](ByteRange range) { free.push_back(range); });
    EXPECT_EQ(free, (std::vector<ByteRange>{{0, KiB}, {2 * KiB, MiB}}));
    free.clear();
    allocator.for_each_free(ByteCount{2 * KiB}, [&](ByteRange range) { free.push_back(range); });
    EXPECT_EQ(free, (std::vector<ByteRange>{{2 * KiB, MiB}}));
}

// The share of the region in use, as asked for, at the first refusal.
double filled(uint64_t seed, uint64_t region_bytes, uint64_t size_max) {
    RegionAllocator allocator{region(0, region_bytes)};
    std::mt19937_64 random{seed};
    std::uniform_int_distribution<uint64_t> sizes{1, size_max};
    uint64_t asked = 0;
    for (;;) {
        const uint64_t size = sizes(random);
        if (!allocator.allocate(ByteCount{size}, byte_aligned))
            return static_cast<double>(asked) / static_cast<double>(region_bytes);
        asked += size;
    }
}

TEST(RegionAllocator, UniformRandomSizesFill97PercentBeforeTheFirstRefusal_1000Seeds) {
    for (uint64_t seed = 0; seed < 1000; ++seed) {
        ASSERT_GE(filled(seed, 64 * MiB, 512 * KiB), 0.97) << "seed " << seed;
        ASSERT_GE(filled(seed, 256 * MiB, 4 * MiB), 0.97) << "seed " << seed;
    }
}

// A refusal means that really no free block is large enough.
TEST(RegionAllocator, AfterRandomFrees_OnlyWhatFitsNowhereIsRefused_1000Seeds) {
    for (uint64_t seed = 0; seed < 1000; ++seed) {
        RegionAllocator allocator{region(0, 4 * MiB)};
        std::mt19937_64 random{seed};
        std::uniform_int_distribution<uint64_t> sizes{1, 64 * KiB};
        std::vector<RegionAllocator::Block> blocks;
        while (const auto block = allocator.allocate(ByteCount{sizes(random)}, byte_aligned))
            blocks.push_back(*block);
        std::shuffle(blocks.begin(), blocks.end(), random);
        for (size_t i = 0; i < blocks.size() / 2; ++i)
            allocator.free(blocks[i]);
        for (int refusals = 0; refusals < 10;) {
            const ByteCount size{sizes(random)};
            const ByteCount largest = allocator.largest_free();
            const bool done = allocator.allocate(size, byte_aligned).has_value();
            ASSERT_EQ(done, size <= largest) << "seed " << seed;
            refusals += done ? 0 : 1;
        }
        ASSERT_TRUE(allocator.validate());
    }
}

#ifndef NDEBUG
TEST(RegionAllocatorDeathTest, FreeingTwiceIsCaught) {
    RegionAllocator allocator{region(0, MiB)};
    const auto block = *allocator.allocate(ByteCount{64}, byte_aligned);
    const auto other = *allocator.allocate(ByteCount{64}, byte_aligned);
    allocator.free(block);
    EXPECT_DEATH(allocator.free(block), "freed twice");
    allocator.free(other);
}
#endif

TEST(RegionAllocator, RegionGrowsAndShrinksAtItsEnd) {
    RegionAllocator allocator({DeviceAddress{1 << 20}, ByteCount{0}, Alignment{64}});
    EXPECT_FALSE(allocator.allocate(ByteCount{1}, Alignment{1}));
    EXPECT_EQ(allocator.free_tail().value, 0u);
    allocator.grow(ByteCount{1024});
    EXPECT_TRUE(allocator.validate());
    const auto first = allocator.allocate(ByteCount{1024}, Alignment{1});
    ASSERT_TRUE(first);
    EXPECT_EQ(allocator.free_tail().value, 0u);
    allocator.grow(ByteCount{512});
    const auto second = allocator.allocate(ByteCount{256}, Alignment{1});
    ASSERT_TRUE(second);
    EXPECT_EQ(second->offset, 1024u);
    EXPECT_EQ(allocator.free_tail().value, 256u);
    allocator.grow(ByteCount{256});  // joins the free end
    EXPECT_EQ(allocator.free_tail().value, 512u);
    EXPECT_EQ(allocator.largest_free().value, 512u);
    EXPECT_TRUE(allocator.validate());
    allocator.shrink(ByteCount{128});
    EXPECT_EQ(allocator.free_tail().value, 384u);
    EXPECT_TRUE(allocator.validate());
    allocator.shrink(ByteCount{384});
    EXPECT_EQ(allocator.statistics().capacity.value, 1280u);
    EXPECT_TRUE(allocator.validate());
    allocator.free(*first);
    allocator.free(*second);
    EXPECT_EQ(allocator.free_tail().value, 1280u);
    allocator.shrink(ByteCount{1280});
    EXPECT_TRUE(allocator.is_unused());
    EXPECT_TRUE(allocator.validate());
    allocator.grow(ByteCount{64});
    EXPECT_TRUE(allocator.allocate(ByteCount{64}, Alignment{1}));
    EXPECT_TRUE(allocator.validate());
}

// At the begin of a free block, in its middle, at its end, and all of it.
TEST(RegionAllocator, PartsOfFreeBlocksAreTaken) {
    RegionAllocator allocator{region(0, 64 * KiB)};
    std::vector<RegionAllocator::Block> blocks;
    for (int i = 0; i < 8; ++i)
        blocks.push_back(*allocator.allocate(ByteCount{8 * KiB}, byte_aligned));
    for (size_t i = 0; i < 8; i += 2)
        allocator.free(blocks[i]);
    const std::vector<ByteRange> wanted{{0, 2 * KiB}, {18 * KiB, 20 * KiB}, {38 * KiB, 40 * KiB}, {48 * KiB, 56 * KiB}};
    std::vector<RegionAllocator::Block> places(9);
    const auto part = [&](ByteRange free) {
        const auto found = std::ranges::find_if(wanted, [&](ByteRange each) { return free.contains(each); });
        return found == wanted.end() ? ByteRange{} : *found;
    };
    places.resize(allocator.take_parts(ByteCount{1}, places, part));
    EXPECT_TRUE(allocator.validate());
    EXPECT_EQ(allocator.free_bytes(), ByteCount{18 * KiB});
    std::ranges::sort(places, {}, &RegionAllocator::Block::offset);
    ASSERT_EQ(places.size(), wanted.size());
    for (size_t i = 0; i < places.size(); ++i)
        EXPECT_EQ(places[i].range(), wanted[i]);
    EXPECT_EQ(allocator.free_before(places[1]), ByteCount{2 * KiB});
    EXPECT_EQ(allocator.free_behind(places[1]), ByteCount{4 * KiB});
    EXPECT_EQ(allocator.free_before(places[3]), ByteCount{0});
    for (const RegionAllocator::Block& place : places)
        allocator.free(place);
    for (size_t i = 1; i < 8; i += 2)
        allocator.free(blocks[i]);
    EXPECT_TRUE(allocator.is_unused());
    EXPECT_EQ(allocator.largest_free(), ByteCount{64 * KiB});
    EXPECT_TRUE(allocator.validate());
}

TEST(RegionAllocator, AUsedBlockIsSplit) {
    RegionAllocator allocator{region(0, 64 * KiB)};
    auto rest = *allocator.allocate(ByteCount{8 * KiB}, byte_aligned);
    const auto first = allocator.split(rest, ByteCount{2 * KiB});
    EXPECT_EQ(first.range(), (ByteRange{0, 2 * KiB}));
    EXPECT_EQ(rest.range(), (ByteRange{2 * KiB, 8 * KiB}));
    EXPECT_TRUE(allocator.validate());
    allocator.free(first);
    EXPECT_TRUE(allocator.validate());
    EXPECT_EQ(allocator.free_before(rest), ByteCount{2 * KiB});
    allocator.free(rest);
    EXPECT_TRUE(allocator.is_unused());
    EXPECT_TRUE(allocator.validate());
}

TEST(RegionAllocator, LargeBlocksAreSpreadInPages_WhereThereIsRoom) {
    RegionAllocator::Region wanted = region(64 * KiB, 256 * KiB, 128);
    wanted.spread = {32 * KiB, 896, 256};
    RegionAllocator allocator{wanted};
    const auto begin_of = [](const RegionAllocator::Block& block) {
        return block.offset % RegionAllocator::page_bytes;
    };
    const auto first = *allocator.allocate(ByteCount{64 * KiB}, byte_aligned);
    EXPECT_EQ(begin_of(first), 256u);
    const auto second = *allocator.allocate(ByteCount{64 * KiB}, byte_aligned);
    EXPECT_EQ(second.offset, first.range().end + 896);
    // The bytes before them are free for small blocks, which begin anywhere.
    const auto small = *allocator.allocate(ByteCount{896}, byte_aligned);
    EXPECT_EQ(small.offset, first.range().end);
    const auto page = *allocator.allocate(ByteCount{32 * KiB}, Alignment{4096});
    EXPECT_EQ(begin_of(page), 0u);
    EXPECT_TRUE(allocator.validate());
    // A hole of the block's size is used again, and the last bytes of the region are used.
    allocator.free(small);
    allocator.free(second);
    allocator.free(*allocator.allocate(ByteCount{64 * KiB + 896}, byte_aligned));
    const auto again = *allocator.allocate(ByteCount{64 * KiB}, byte_aligned);
    EXPECT_EQ(again.offset, second.offset);
    const ByteCount rest = allocator.largest_free();
    const auto last = allocator.allocate(rest, byte_aligned);
    ASSERT_TRUE(last);
    EXPECT_EQ(last->size, rest);
    EXPECT_TRUE(allocator.validate());
}

} // namespace
} // namespace polder
