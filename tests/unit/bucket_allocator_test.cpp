// Rules that only the bucket policy has.
#include "support/pool_fixture.h"

#include <memory/bucket_allocator.h>

#include <thread>

namespace polder::memory {
namespace {

using namespace test;

struct BucketFixture {
    explicit BucketFixture(AllocationPolicy policy = {}, const FakeSource::Behaviour& behaviour = {}) {
        auto made = std::make_unique<FakeSource>(behaviour);
        source = made.get();
        pool.emplace(std::move(made), policy, AllocatorOptions{.space = SpaceId{1}});
    }
    [[nodiscard]] Block take(uint64_t size) { return *pool->allocate(ByteCount{size}, aligned); }

    FakeSource* source = nullptr;
    std::optional<BucketAllocator> pool;
};

TEST(BucketAllocator, BlocksArePowersOfTwo) {
    BucketFixture fixture;
    struct {
        uint64_t asked, gets;
    } const cases[] = {{1, 256}, {256, 256}, {257, 512}, {3 * MiB, 4 * MiB}, {4 * MiB, 4 * MiB}};
    for (const auto& [asked, gets] : cases) {
        const Block block = fixture.take(asked);
        EXPECT_EQ(fixture.pool->statistics().live.value, gets);
        fixture.pool->free(block, {});
    }
}

TEST(BucketAllocator, HitsAndMissesAreCountedPerBucket) {
    BucketFixture fixture;
    for (int i = 0; i < 10; ++i)
        fixture.pool->free(fixture.take(3 * MiB), {});
    const auto bucket = fixture.pool->bucket_statistics(ByteCount{3 * MiB});
    EXPECT_EQ(bucket.block_bytes, 4 * MiB);
    EXPECT_EQ(bucket.misses, 1u);
    EXPECT_EQ(bucket.hits, 9u);
    EXPECT_DOUBLE_EQ(bucket.hit_rate(), 0.9);
    EXPECT_EQ(fixture.pool->bucket_statistics(ByteCount{8 * MiB}).hits, 0u);
    EXPECT_EQ(fixture.source->reserves, 1);
}

TEST(BucketAllocator, SmallBlocksShareASlab) {
    BucketFixture fixture;
    std::vector<Block> blocks;
    for (int i = 0; i < 1024; ++i)
        blocks.push_back(fixture.take(KiB));
    EXPECT_EQ(fixture.source->reserves, 1);
    blocks.push_back(fixture.take(KiB));
    EXPECT_EQ(fixture.source->reserves, 2);
    for (const Block& block : blocks)
        fixture.pool->free(block, {});
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BucketAllocator, FreeingTwiceDoesNothing_AlsoWhenTheBlockIsInUseAgain) {
    BucketFixture fixture;
    const Block first = fixture.take(MiB);
    fixture.pool->free(first, {});
    fixture.pool->free(first, {});
    const Block second = fixture.take(MiB);
    ASSERT_EQ(second.address, first.address);
    fixture.pool->free(first, {});
    EXPECT_EQ(fixture.pool->statistics().live_blocks, 1u);
    EXPECT_NE(fixture.take(MiB).address, second.address);
    EXPECT_EQ(fixture.pool->bucket_statistics(ByteCount{MiB}).stale_frees, 2u);
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BucketAllocator, FreeingAPendingBlockTwiceDoesNothing) {
    BucketFixture fixture;
    FakeQueue queue;
    const Block block = fixture.take(MiB);
    const driver::Timepoint used = queue.at(1);
    fixture.pool->free(block, {&used, 1});
    fixture.pool->free(block, {});
    EXPECT_EQ(fixture.pool->statistics().deferred_blocks, 1u);
    EXPECT_NE(fixture.take(MiB).address, block.address);
    queue.complete(1);
    fixture.pool->drain();
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BucketAllocator, WhatIsFreeIsBounded_AndTheLeastRecentlyUsedGoesBack) {
    AllocationPolicy policy;
    policy.max_bytes = ByteCount{8 * MiB};
    BucketFixture fixture{policy};
    const Block a = fixture.take(4 * MiB);
    const Block b = fixture.take(4 * MiB);
    const Block c = fixture.take(2 * MiB);
    fixture.pool->free(b, {});
    fixture.pool->free(a, {});
    EXPECT_EQ(fixture.source->releases, 0);
    fixture.pool->free(c, {});  // 10 MiB are free
    EXPECT_EQ(fixture.source->releases, 1);
    EXPECT_EQ(fixture.pool->statistics().reserved.value, 6 * MiB);
    EXPECT_EQ(fixture.take(4 * MiB).address, a.address);
    EXPECT_EQ(fixture.take(2 * MiB).address, c.address);
    EXPECT_EQ(fixture.source->reserves, 3);
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BucketAllocator, ClearGivesAllFreeSlabsBack_AndKeepsTheOthers) {
    BucketFixture fixture;
    const Block kept = fixture.take(KiB);
    const Block gone = fixture.take(KiB);
    const Block large = fixture.take(16 * MiB);
    fixture.pool->free(gone, {});
    fixture.pool->free(large, {});
    fixture.pool->clear();
    EXPECT_EQ(fixture.pool->statistics().reserved.value, MiB);
    EXPECT_EQ(fixture.take(KiB).address, gone.address);
    fixture.pool->free(kept, {});
}

TEST(BucketAllocator, PersistentBlocksStayUntilTheirMemoryIsNeeded) {
    AllocationPolicy policy;
    policy.persistent = true;
    policy.max_bytes = ByteCount{1 * MiB};  // does not bound them
    BucketFixture fixture{policy, {.capacity = 16 * MiB}};
    const Block one = fixture.take(8 * MiB);
    fixture.pool->free(one, {});
    fixture.pool->trim();
    EXPECT_EQ(fixture.source->releases, 0);
    const Block again = fixture.take(8 * MiB);
    EXPECT_EQ(again.address, one.address);
    fixture.pool->free(again, {});
    EXPECT_EQ(fixture.source->reserves, 1);
    fixture.pool->free(fixture.take(16 * MiB), {});  // needs all of the memory
    EXPECT_EQ(fixture.source->releases, 1);
    fixture.pool->clear();
    EXPECT_EQ(fixture.source->releases, 2);
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BucketAllocator, FullMemoryGivesALargerBlockRatherThanNone) {
    BucketFixture fixture{{}, {.capacity = 16 * MiB}};
    const Block large = fixture.take(8 * MiB);
    const Block other = fixture.take(8 * MiB);
    fixture.pool->free(large, {});
    const Block small = fixture.take(KiB);  // the slab of 8 MiB goes back and makes room
    EXPECT_EQ(fixture.pool->statistics().retries, 1u);
    fixture.pool->free(small, {});
    fixture.pool->free(other, {});
    EXPECT_TRUE(fixture.pool->validate());
}

// A bucket whose lock belongs to one thread is cheaper to use. Growing and draining look at all buckets, but lock only those with
// pending blocks.
TEST(BucketAllocator, ABucketThatOneThreadUsesBelongsToThisThread) {
    BucketFixture fixture;
    const auto is_shared = [&](uint64_t size) { return fixture.pool->bucket_statistics(ByteCount{size}).is_shared; };
    fixture.pool->free(fixture.take(KiB), {});
    if (is_shared(KiB))
        GTEST_SKIP() << "the system has no membarrier";
    const auto in_another_thread = [](auto&& what) { std::thread{what}.join(); };
    in_another_thread([&] {
        fixture.pool->free(fixture.take(2 * KiB), {});
        fixture.pool->drain();
        EXPECT_FALSE(is_shared(2 * KiB));
    });
    EXPECT_FALSE(is_shared(KiB));
    FakeQueue queue;
    const driver::Timepoint used = queue.at(1);
    fixture.pool->free(fixture.take(KiB), {&used, 1});
    queue.complete(1);
    in_another_thread([&] { fixture.pool->drain(); });  // frees this block
    EXPECT_TRUE(is_shared(KiB));
    EXPECT_EQ(fixture.pool->statistics().deferred_blocks, 0u);
    EXPECT_TRUE(fixture.pool->validate());
}

}  // namespace
}  // namespace polder::memory
