// PyTorch's documented rules of its native caching allocator, one test each. The numbers are those of its documentation
// (https://pytorch.org/docs/stable/notes/cuda.html) and of the description of the allocator by its author
// (https://zdevito.github.io/2022/08/04/cuda-caching-allocator.html).
#include "support/allocator_fixture.h"

#include <memory/caching_allocator.h>

#include <algorithm>
#include <random>
#include <utility>

namespace polder::memory {
namespace {

using namespace test;

struct CachingFixture : AllocatorFixture {
    explicit CachingFixture(const std::string& settings = "", const FakeSource::Behaviour& behaviour = {})
        : AllocatorFixture("backend:caching" + (settings.empty() ? "" : "," + settings), behaviour) {}
    [[nodiscard]] const CachingAllocator& caching() const { return static_cast<const CachingAllocator&>(*pool); }
    void free(const Block& block, driver::Waits after = {}) const { pool->free(block, after); }
};

TEST(CachingAllocator, SizesAreRoundedTo512Bytes) {
    const CachingFixture fixture;
    EXPECT_EQ(fixture.caching().round_size(0), 512u);
    EXPECT_EQ(fixture.caching().round_size(1), 512u);
    EXPECT_EQ(fixture.caching().round_size(512), 512u);
    EXPECT_EQ(fixture.caching().round_size(513), 1024u);
    EXPECT_EQ(fixture.caching().round_size(MiB + 1), MiB + 512);
}

TEST(CachingAllocator, SegmentsAre2MiBForSmall_20MiBForMedium_AndRoundedTo2MiBForLarge) {
    struct {
        uint64_t size, segment;
    } const cases[] = {{512, 2 * MiB},       {MiB, 2 * MiB},       {MiB + 512, 20 * MiB}, {10 * MiB - 512, 20 * MiB},
                       {10 * MiB, 10 * MiB}, {11 * MiB, 12 * MiB}, {100 * MiB, 100 * MiB}};
    for (const auto& [size, segment] : cases) {
        EXPECT_EQ(CachingAllocator::segment_size(size), segment);
        const CachingFixture fixture;
        fixture.free(fixture.take(size));
        EXPECT_EQ(fixture.source->reserved, segment) << size;
    }
}

TEST(CachingAllocator, SmallRequestsArePackedIntoOneSegment) {
    const CachingFixture fixture;
    for (int i = 0; i < 4096; ++i)
        static_cast<void>(fixture.take(512));
    EXPECT_EQ(fixture.source->reserves, 1);
    EXPECT_EQ(fixture.now().live.value, 2 * MiB);
    static_cast<void>(fixture.take(512));
    EXPECT_EQ(fixture.source->reserves, 2);
}

TEST(CachingAllocator, PoolsAreApart_ASmallRequestTakesNothingOfALargeSegment) {
    const CachingFixture fixture;
    fixture.free(fixture.take(5 * MiB));
    static_cast<void>(fixture.take(512));
    EXPECT_EQ(fixture.source->reserved, 22 * MiB);
}

TEST(CachingAllocator, SmallestBlockThatFitsIsTaken) {
    const CachingFixture fixture;
    const Block large = fixture.take(40 * MiB);
    const Block medium = fixture.take(20 * MiB);
    const Block larger = fixture.take(60 * MiB);
    for (const Block& block : {large, medium, larger})
        fixture.free(block);
    EXPECT_EQ(fixture.take(18 * MiB).address, medium.address);
    EXPECT_EQ(fixture.source->reserves, 3);
}

// PyTorch's order of free blocks: the size, then the address. Also with more blocks of a size than lie beside each other in a bin.
TEST(CachingAllocator, OfSmallBlocksTheSmallestThatFitsThenTheLowestAddressIsTaken) {
    const CachingFixture fixture;
    std::vector<Block> blocks, kept;
    for (int i = 0; i < 300; ++i) {
        blocks.push_back(fixture.take(i % 3 == 1 ? 3 * KiB : 2 * KiB));
        kept.push_back(fixture.take(512));  // so that no two merge
    }
    std::vector<Block> order = blocks;
    std::ranges::shuffle(order, std::mt19937_64(1));
    for (const Block& block : order)
        fixture.free(block);
    std::ranges::sort(blocks, {},
                      [](const Block& block) { return std::pair(block.place.size.value, block.address.value); });
    for (const Block& block : blocks)
        ASSERT_EQ(fixture.take(block.place.size.value - 511).address, block.address);
    fixture.free(blocks[250]);  // of 3 KiB
    fixture.free(blocks[20]);  // of 2 KiB
    EXPECT_EQ(fixture.take(512).address, blocks[20].address);  // 1.5 KiB of it stay
    EXPECT_EQ(fixture.take(2 * KiB).address, blocks[250].address);
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(CachingAllocator, LargeBlockIsSplitWhenMoreThan1MiBRemains) {
    const CachingFixture fixture;
    fixture.free(fixture.take(20 * MiB));
    const Block block = fixture.take(19 * MiB);  // 1 MiB remains: not split
    EXPECT_EQ(fixture.now().live.value, 20 * MiB);
    fixture.free(block);
    static_cast<void>(fixture.take(19 * MiB - 512));
    EXPECT_EQ(fixture.now().live.value, 19 * MiB - 512);
    EXPECT_EQ(fixture.now().inactive_split.value, MiB + 512);
}

TEST(CachingAllocator, FreeNeighboursAreMerged) {
    const CachingFixture fixture;
    const Block a = fixture.take(5 * MiB);
    const Block b = fixture.take(5 * MiB);
    const Block c = fixture.take(5 * MiB);
    EXPECT_EQ(fixture.source->reserves, 1);
    fixture.free(a);
    fixture.free(c);
    EXPECT_EQ(fixture.now().free_blocks, 2u);
    fixture.free(b);
    EXPECT_EQ(fixture.now().free_blocks, 1u);
    EXPECT_EQ(fixture.now().inactive_split.value, 0u);
    EXPECT_EQ(fixture.take(20 * MiB).address, a.address);
}

TEST(CachingAllocator, EachQueueHasItsOwnBlocks) {
    const CachingFixture fixture;
    FakeQueue a, b;
    const Lease first = fixture.lease_on(a, 20 * MiB);
    fixture.free(first.block);
    const Lease second = fixture.lease_on(b, 20 * MiB);
    EXPECT_NE(second.block.address, first.block.address);
    EXPECT_EQ(fixture.lease_on(a, 20 * MiB).block.address, first.block.address);
    EXPECT_EQ(fixture.source->reserves, 2);
}

TEST(CachingAllocator, BlockThatItsOwnQueueStillUsesIsFreeAtOnce) {
    const CachingFixture fixture;
    FakeQueue queue;
    const Lease first = fixture.lease_on(queue, 20 * MiB);
    const driver::Timepoint used = queue.at(4);
    fixture.free(first.block, {&used, 1});
    EXPECT_EQ(fixture.now().deferred.value, 0u);
    const Lease second = fixture.lease_on(queue, 20 * MiB);
    EXPECT_EQ(second.block.address, first.block.address);
    ASSERT_EQ(second.after.size(), 1u);
    EXPECT_EQ(second.after[0], used);
}

// record_stream(): memory that another stream uses is not used again before that stream is done.
TEST(CachingAllocator, BlockThatAnotherQueueUsesIsPending) {
    const CachingFixture fixture;
    FakeQueue a, b;
    const Lease first = fixture.lease_on(a, 20 * MiB);
    const driver::Timepoint used = b.at(1);
    fixture.free(first.block, {&used, 1});
    EXPECT_EQ(fixture.now().deferred.value, 20 * MiB);
    EXPECT_NE(fixture.lease_on(a, 20 * MiB).block.address, first.block.address);
    b.complete(1);
    EXPECT_EQ(fixture.lease_on(a, 20 * MiB).block.address, first.block.address);
}

TEST(CachingAllocator, PartsOfASplitBlockKeepItsTimepoint) {
    const CachingFixture fixture;
    FakeQueue queue;
    const Lease whole = fixture.lease_on(queue, 20 * MiB);
    const driver::Timepoint used = queue.at(9);
    fixture.free(whole.block, {&used, 1});
    static_cast<void>(fixture.lease_on(queue, 5 * MiB));
    const Lease part = fixture.lease_on(queue, 5 * MiB);
    ASSERT_EQ(part.after.size(), 1u);
    EXPECT_EQ(part.after[0], used);
}

TEST(CachingAllocator, EmptyCacheGivesUnsplitBlocksBack_AndNoOthers) {
    const CachingFixture fixture;
    const Block kept = fixture.take(5 * MiB);
    fixture.free(fixture.take(5 * MiB));
    fixture.free(fixture.take(40 * MiB));
    fixture.pool->trim();
    EXPECT_EQ(fixture.source->reserved, 20 * MiB);
    EXPECT_EQ(fixture.now().inactive_split.value, 15 * MiB);
    fixture.free(kept);
}

// --- max_split_size_mb: "prevents the native allocator from splitting blocks larger than this size" ---

TEST(CachingAllocator, OversizeBlocksAreNotSplit_NorGivenToSmallerRequests) {
    const CachingFixture fixture{"max_split_size_mb:40"};
    fixture.free(fixture.take(100 * MiB));
    static_cast<void>(fixture.take(30 * MiB));  // not out of the 100 MiB
    EXPECT_EQ(fixture.source->reserved, 130 * MiB);
    const Block block = fixture.take(90 * MiB);  // oversize as well, and less than 20 MiB smaller
    EXPECT_EQ(fixture.source->reserved, 130 * MiB);
    EXPECT_EQ(fixture.now().live.value, 130 * MiB);  // whole
    fixture.free(block);
    static_cast<void>(fixture.take(80 * MiB));  // 20 MiB would be wasted
    EXPECT_EQ(fixture.source->reserved, 210 * MiB);
}

TEST(CachingAllocator, BelowTheSplitSizeBlocksAreSplit) {
    const CachingFixture fixture{"max_split_size_mb:40"};
    fixture.free(fixture.take(39 * MiB));
    static_cast<void>(fixture.take(20 * MiB));
    EXPECT_EQ(fixture.now().live.value, 20 * MiB);
}

// --- a memory that is full ---

TEST(CachingAllocator, FullMemory_OneUnsplitCachedBlockThatIsLargeEnoughGoesBack) {
    const CachingFixture fixture{"max_split_size_mb:40", {.capacity = 200 * MiB}};
    const Block a = fixture.take(60 * MiB);
    const Block b = fixture.take(90 * MiB);
    const Block c = fixture.take(50 * MiB);
    for (const Block& block : {a, b, c})
        fixture.free(block);
    static_cast<void>(fixture.take(70 * MiB));  // 90 fits, but is 20 MiB more: it is given back for 70
    EXPECT_EQ(fixture.source->releases, 1);
    EXPECT_EQ(fixture.now().retries, 1u);
    EXPECT_EQ(fixture.source->reserved, 180 * MiB);
}

TEST(CachingAllocator, FullMemory_TheLargestOversizeBlocksGoBackUntilThereIsEnough) {
    const CachingFixture fixture{"max_split_size_mb:40", {.capacity = 200 * MiB}};
    const Block a = fixture.take(60 * MiB);
    const Block b = fixture.take(90 * MiB);
    const Block c = fixture.take(50 * MiB);
    for (const Block& block : {a, b, c})
        fixture.free(block);
    static_cast<void>(fixture.take(140 * MiB));  // 90 and 60
    EXPECT_EQ(fixture.source->releases, 2);
    EXPECT_EQ(fixture.source->reserved, 190 * MiB);
}

TEST(CachingAllocator, FullMemory_WithoutASplitSizeAllUnsplitBlocksGoBack) {
    const CachingFixture fixture{"", {.capacity = 200 * MiB}};
    const Block a = fixture.take(60 * MiB);
    const Block b = fixture.take(60 * MiB);
    const Block c = fixture.take(60 * MiB);
    for (const Block& block : {a, b, c})
        fixture.free(block);
    static_cast<void>(fixture.take(70 * MiB));
    EXPECT_EQ(fixture.source->releases, 3);
    EXPECT_EQ(fixture.source->reserved, 70 * MiB);
    EXPECT_EQ(fixture.now().retries, 1u);
}

TEST(CachingAllocator, FullMemory_BlocksOfOtherQueuesGoBackWhenTheyAreDone) {
    const CachingFixture fixture{"", {.capacity = 100 * MiB}};
    FakeQueue a, b;
    const Lease first = fixture.lease_on(a, 80 * MiB);
    const driver::Timepoint used = a.at(1);
    fixture.free(first.block, {&used, 1});
    const Lease second = fixture.lease_on(b, 80 * MiB);
    EXPECT_EQ(a.waited, std::vector<uint64_t>{1});
    EXPECT_TRUE(second.after.empty());
    EXPECT_EQ(fixture.source->releases, 1);
}

TEST(CachingAllocator, FullMemory_ARequestThatHasWaitedIsARetry) {
    const CachingFixture fixture;
    FakeQueue a, b;
    const Lease first = fixture.lease_on(a, 80 * MiB);
    fixture.pool->set_limit(ByteCount{80 * MiB});
    const driver::Timepoint used = b.at(1);
    fixture.free(first.block, {&used, 1});
    EXPECT_EQ(fixture.lease_on(a, 80 * MiB).block.address, first.block.address);
    EXPECT_EQ(b.waited, std::vector<uint64_t>{1});
    EXPECT_EQ(fixture.now().retries, 1u);
}

TEST(CachingAllocator, FullMemory_FragmentationIsReported) {
    const CachingFixture fixture{"", {.capacity = 20 * MiB}};
    std::vector<Block> blocks;
    for (int i = 0; i < 4; ++i)
        blocks.push_back(fixture.take(5 * MiB));
    fixture.free(blocks[0]);
    fixture.free(blocks[2]);
    const auto refused = fixture.pool->allocate(ByteCount{8 * MiB}, aligned);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().detail().find("free 10485760, largest free block 5242880"), std::string_view::npos)
        << refused.error().detail();
    EXPECT_EQ(fixture.now().inactive_split.value, 10 * MiB);
}

// --- roundup_power2_divisions ---

TEST(CachingAllocator, DivisionsRoundSizes_SoThatNearbySizesUseTheSameBlock) {
    const CachingFixture fixture{"roundup_power2_divisions:4"};
    EXPECT_EQ(fixture.caching().round_size(1200), 1536u);  // 1280, in blocks of 512
    EXPECT_EQ(fixture.caching().round_size(33 * MiB), 40 * MiB);
    const Block block = fixture.take(33 * MiB);
    fixture.free(block);
    EXPECT_EQ(fixture.take(39 * MiB).address, block.address);
}

// --- garbage_collection_threshold: "start reclaiming GPU memory blocks if the GPU memory capacity usage exceeds the
// threshold"; "The algorithm prefers to free old & unused blocks first" ---

TEST(CachingAllocator, BeyondTheThresholdTheOldestUnusedBlocksGoBack) {
    const CachingFixture fixture{"garbage_collection_threshold:0.5", {.capacity = 400 * MiB}};
    const Block old = fixture.take(60 * MiB);
    const Block young = fixture.take(80 * MiB);
    fixture.free(old);
    for (int i = 0; i < 20; ++i)  // many searches
        fixture.free(fixture.take(12 * MiB));
    fixture.free(young);
    ASSERT_EQ(fixture.source->releases, 0);
    const uint64_t before = fixture.source->reserved;
    static_cast<void>(fixture.take(90 * MiB));  // passes half of 400 MiB
    EXPECT_GE(fixture.source->releases, 1);
    EXPECT_LT(fixture.source->reserved, before + 90 * MiB);
    EXPECT_EQ(fixture.take(80 * MiB).address, young.address);  // was not given back
}

TEST(CachingAllocator, BelowTheThresholdNothingGoesBack) {
    const CachingFixture fixture{"garbage_collection_threshold:0.9", {.capacity = 400 * MiB}};
    fixture.free(fixture.take(60 * MiB));
    static_cast<void>(fixture.take(90 * MiB));
    EXPECT_EQ(fixture.source->releases, 0);
}

// --- expandable_segments: "allocations that can later be expanded" ---

TEST(CachingAllocator, ExpandableSegmentGrowsInPlace) {
    const CachingFixture fixture{"expandable_segments:True", {.grows = true}};
    const Block a = fixture.take(24 * MiB);
    const Block b = fixture.take(24 * MiB);
    EXPECT_EQ(fixture.source->address_ranges, 1);
    EXPECT_EQ(b.address.value, a.address.value + 24 * MiB);
    EXPECT_EQ(fixture.source->reserved, 60 * MiB);  // in steps of 20 MiB: 40, then 12 missing
    fixture.free(a);
    fixture.free(b);
    // A size that changes from iteration to iteration: the merged block grows by what is missing.
    const Block grown = fixture.take(70 * MiB);
    EXPECT_EQ(grown.address, a.address);
    EXPECT_EQ(fixture.source->reserved, 80 * MiB);
    fixture.free(grown);
    fixture.pool->trim();
    EXPECT_EQ(fixture.source->reserved, 0u);
    EXPECT_EQ(fixture.source->address_ranges, 1);
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(CachingAllocator, ExpandableSegmentShrinksBehindItsLastBlock) {
    const CachingFixture fixture{"expandable_segments:True", {.grows = true}};
    const Block kept = fixture.take(5 * MiB);
    fixture.free(fixture.take(75 * MiB));
    fixture.pool->trim();
    EXPECT_EQ(fixture.source->reserved, 6 * MiB);
    EXPECT_TRUE(fixture.pool->validate());
    fixture.free(kept);
}

TEST(CachingAllocator, WithoutAddressesExpandableSegmentsAreOrdinaryOnes) {
    const CachingFixture fixture{"expandable_segments:True"};
    static_cast<void>(fixture.take(24 * MiB));
    EXPECT_EQ(fixture.source->reserves, 1);
}

}  // namespace
}  // namespace polder::memory
