#include "support/pool_fixture.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace polder::memory {
namespace {

using namespace test;
using testing::HasSubstr;

TEST(BlockPool, NothingIsReservedBeforeTheFirstBlock) {
    const Fixture fixture{{}};
    EXPECT_EQ(fixture.source->reserves, 0);
    const Block block = fixture.take(KiB);
    EXPECT_EQ(fixture.source->reserves, 1);
    fixture.pool->free(block, {});
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BlockPool, AddressesAreAlignedAndApart) {
    const Fixture fixture{{.region = 64 * MiB, .first_address = 4096 + 128}};
    std::vector<Block> blocks;
    for (uint64_t alignment = 128; alignment <= MiB; alignment *= 2) {
        const auto block = fixture.pool->allocate(ByteCount{alignment / 2 + 1}, Alignment{alignment});
        ASSERT_TRUE(block);
        EXPECT_TRUE(Alignment{alignment}.divides(block->address.value));
        blocks.push_back(*block);
    }
    for (const Block& a : blocks)
        for (const Block& b : blocks)
            EXPECT_TRUE(&a == &b || a.address.value + a.size.value <= b.address.value ||
                        b.address.value + b.size.value <= a.address.value);
    for (const Block& block : blocks)
        fixture.pool->free(block, {});
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BlockPool, FreedBlockIsUsedAgain) {
    const Fixture fixture{{.region = MiB}};
    const Block block = fixture.take(MiB);
    fixture.pool->free(block, {});
    EXPECT_EQ(fixture.take(MiB).address, block.address);
    EXPECT_EQ(fixture.source->reserves, 1);
}

TEST(BlockPool, WholeMemoryOfADeviceInOneBlock) {
    const Fixture fixture{{.capacity = 256 * MiB, .region = 256 * MiB}};
    const Block block = fixture.take(256 * MiB);
    EXPECT_THAT(fixture.refusal(1), HasSubstr("asked for 1 bytes"));
    fixture.pool->free(block, {});
    EXPECT_TRUE(fixture.pool->allocate(ByteCount{256 * MiB}, Alignment{1}));
}

TEST(BlockPool, AnotherRegionIsReservedWhenTheFirstIsFull_UpToAllMemory) {
    const Fixture fixture{{.capacity = 10 * MiB, .region = 4 * MiB}};
    for (int i = 0; i < 10; ++i)
        static_cast<void>(fixture.take(MiB));
    EXPECT_EQ(fixture.source->reserved, 10 * MiB);
    EXPECT_EQ(fixture.pool->statistics().free, ByteCount{0});
    static_cast<void>(fixture.refusal(1));
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BlockPool, DeferredBlockIsNotUsedBeforeItsTimepoint) {
    const Fixture fixture{{.capacity = 2 * MiB, .region = 2 * MiB}};
    FakeQueue queue;
    const Block block = fixture.take(MiB);
    const driver::Timepoint after[] = {queue.at(5)};
    fixture.pool->free(block, after);
    EXPECT_EQ(fixture.pool->statistics().deferred, ByteCount{MiB});
    EXPECT_EQ(fixture.pool->statistics().live, ByteCount{0});
    EXPECT_NE(fixture.take(MiB).address, block.address);
    EXPECT_THAT(fixture.refusal(MiB, WhenFull::fail), HasSubstr("deferred 1048576"));
    queue.complete(5);
    EXPECT_EQ(fixture.take(MiB).address, block.address);
    EXPECT_TRUE(queue.waited.empty());
}

TEST(BlockPool, BlockWaitsForEveryTimepointOfEveryQueue) {
    const Fixture fixture{{.capacity = MiB, .region = MiB}};
    FakeQueue a, b, c;
    c.complete(100);
    const driver::Timepoint after[] = {a.at(3), c.at(7), b.at(4), a.at(9)};
    fixture.pool->free(fixture.take(MiB), after);
    for (const auto& step :
         std::vector<std::function<void()>>{[&] { a.complete(3); }, [&] { b.complete(4); }, [&] { a.complete(8); }}) {
        step();
        fixture.pool->drain();
        EXPECT_EQ(fixture.pool->statistics().deferred_blocks, 1u);
        EXPECT_TRUE(fixture.pool->validate());
    }
    a.complete(9);
    fixture.pool->drain();
    EXPECT_EQ(fixture.pool->statistics().deferred_blocks, 0u);
    EXPECT_EQ(fixture.pool->statistics().free, ByteCount{MiB});
}

TEST(BlockPool, BlocksFreedOutOfOrderAreReusedInTheOrderOfTheTimeline) {
    const Fixture fixture{{.region = 64 * MiB}};
    FakeQueue queue;
    for (const uint64_t value : {30, 10, 20, 10, 40}) {
        const driver::Timepoint after[] = {queue.at(value)};
        fixture.pool->free(fixture.take(MiB), after);
        EXPECT_TRUE(fixture.pool->validate());
    }
    queue.complete(10);
    fixture.pool->drain();
    EXPECT_EQ(fixture.pool->statistics().deferred_blocks, 3u);
    queue.complete(30);
    fixture.pool->drain();
    EXPECT_EQ(fixture.pool->statistics().deferred_blocks, 1u);
}

TEST(BlockPool, FullPoolWaitsForTheOldestDeferredBlocks_AndNoLongerThanNeeded) {
    const Fixture fixture{{.capacity = 4 * MiB, .region = 4 * MiB}};
    FakeQueue queue;
    for (uint64_t value = 1; value <= 4; ++value) {
        const Block block = fixture.take(MiB);
        const driver::Timepoint after[] = {queue.at(value)};
        fixture.pool->free(block, after);
    }
    static_cast<void>(fixture.take(2 * MiB));
    EXPECT_EQ(queue.waited, (std::vector<uint64_t>{1, 2}));
    EXPECT_EQ(fixture.pool->statistics().deferred, ByteCount{2 * MiB});
}

TEST(BlockPool, RefusalReportsEveryStep_AndThePoolGoesOnWorking) {
    const Fixture fixture{{.capacity = 4 * MiB, .region = 4 * MiB}};
    FakeQueue queue;
    const Block live = fixture.take(2 * MiB);
    const driver::Timepoint after[] = {queue.at(1)};
    fixture.pool->free(fixture.take(MiB), after);
    const std::string reported = fixture.refusal(3 * MiB);
    for (const char* part :
         {"space 1", "asked for 3145728 bytes", "free 2097152", "largest free block 2097152",
          "live 2097152 in 1 blocks", "deferred 0", "waited for 1 deferred", "the source says: the device is full"})
        EXPECT_THAT(reported, HasSubstr(part));
    fixture.pool->free(live, {});
    static_cast<void>(fixture.take(4 * MiB));
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BlockPool, UnusedRegionsAreRegroupedForALargeBlock) {
    const Fixture fixture{{.capacity = 8 * MiB, .region = 2 * MiB}};
    std::vector<Block> blocks;
    for (int i = 0; i < 4; ++i)
        blocks.push_back(fixture.take(2 * MiB));
    EXPECT_EQ(fixture.source->reserves - fixture.source->releases, 4);
    for (const Block& block : blocks)
        fixture.pool->free(block, {});
    static_cast<void>(fixture.take(8 * MiB));
    EXPECT_EQ(fixture.pool->statistics().regions, 1u);
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BlockPool, HopelessRequestDoesNotDisturbRegions) {
    const Fixture fixture{{.capacity = 8 * MiB, .region = 2 * MiB}};
    fixture.pool->free(fixture.take(KiB), {});
    static_cast<void>(fixture.refusal(9 * MiB));
    static_cast<void>(fixture.refusal(UINT64_MAX));
    EXPECT_EQ(fixture.source->releases, 0);
}

TEST(BlockPool, TrimGivesUnusedRegionsBack) {
    const Fixture fixture{{.region = 2 * MiB}};
    const Block kept = fixture.take(2 * MiB);
    const Block freed = fixture.take(2 * MiB);
    fixture.pool->free(freed, {});
    fixture.pool->trim();
    EXPECT_EQ(fixture.source->reserved, 2 * MiB);
    EXPECT_EQ(fixture.pool->statistics().reserved, ByteCount{2 * MiB});
    fixture.pool->free(kept, {});
    fixture.pool->trim();
    EXPECT_EQ(fixture.source->reserved, 0u);
    fixture.pool->free(fixture.take(KiB), {});
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BlockPool, LimitBoundsWhatIsInUseAndDeferred) {
    Fixture fixture{{.region = 64 * MiB}, {.limit = ByteCount{4 * MiB}}};
    FakeQueue queue;
    const Block first = fixture.take(3 * MiB);
    EXPECT_THAT(fixture.refusal(2 * MiB), HasSubstr("the limit does not allow more"));
    const driver::Timepoint after[] = {queue.at(1)};
    fixture.pool->free(first, after);
    EXPECT_THAT(fixture.refusal(2 * MiB, WhenFull::fail), HasSubstr("limit 4194304"));
    const Block second = fixture.take(4 * MiB);
    EXPECT_EQ(queue.waited, (std::vector<uint64_t>{1}));
    EXPECT_EQ(fixture.pool->free_bytes(), ByteCount{0});
    fixture.pool->set_limit(ByteCount{8 * MiB});
    EXPECT_EQ(fixture.pool->free_bytes(), ByteCount{4 * MiB});
    fixture.pool->set_limit(ByteCount{MiB});
    EXPECT_EQ(fixture.pool->free_bytes(), ByteCount{0});
    fixture.pool->free(second, {});
    static_cast<void>(fixture.take(MiB));
}

TEST(BlockPool, FreeBytesIsWhatCanBeAllocated) {
    const Fixture fixture{{.capacity = 8 * MiB, .region = 2 * MiB}};
    EXPECT_EQ(fixture.pool->free_bytes(), ByteCount{8 * MiB});
    FakeQueue queue;
    static_cast<void>(fixture.take(3 * MiB));
    const driver::Timepoint after[] = {queue.at(1)};
    fixture.pool->free(fixture.take(MiB), after);
    EXPECT_EQ(fixture.pool->free_bytes(), ByteCount{5 * MiB});
}

TEST(BlockPool, WarmMemoryIsKeptUpToTheCacheSize_ThenAllButTheLastFreedGoesBack) {
    const Fixture fixture{{.region = 64 * MiB, .discards = true}, {.cache_max = ByteCount{8 * MiB}}};
    const Block guard = fixture.take(KiB);
    std::vector<Block> blocks;
    for (int i = 0; i < 16; ++i)
        blocks.push_back(fixture.take(MiB));
    EXPECT_EQ(fixture.pool->statistics().cached, ByteCount{0});
    for (int i = 0; i < 8; ++i)
        fixture.pool->free(blocks[i], {});
    EXPECT_EQ(fixture.pool->statistics().cached, ByteCount{8 * MiB});
    EXPECT_EQ(fixture.source->discarded, 0u);
    fixture.pool->free(blocks[8], {});
    EXPECT_EQ(fixture.source->discarded, 8 * MiB);
    EXPECT_EQ(fixture.pool->statistics().cached, ByteCount{MiB});
    for (int i = 9; i < 16; ++i)
        fixture.pool->free(blocks[i], {});
    EXPECT_EQ(fixture.pool->statistics().cached, ByteCount{8 * MiB});
    fixture.pool->trim();
    EXPECT_EQ(fixture.pool->statistics().cached, ByteCount{0});
    EXPECT_EQ(fixture.source->discarded, 16 * MiB);
    EXPECT_TRUE(fixture.pool->validate());
    fixture.pool->free(guard, {});
}

TEST(BlockPool, CreatingAndReleasingALargeBlockAgainAndAgainDiscardsNothing) {
    const Fixture fixture{{.region = 64 * MiB, .discards = true}, {.cache_max = ByteCount{256 * MiB}}};
    for (int i = 0; i < 100; ++i)
        fixture.pool->free(fixture.take(64 * MiB), {});
    EXPECT_EQ(fixture.source->discarded, 0u);
    EXPECT_EQ(fixture.source->releases, 0);
    EXPECT_LE(fixture.source->reserves, 1);
}

TEST(BlockPool, BlockLargerThanTheCacheGoesBackAtOnce) {
    const Fixture fixture{{.region = MiB, .discards = true}, {.cache_max = ByteCount{8 * MiB}}};
    fixture.pool->free(fixture.take(16 * MiB), {});
    EXPECT_EQ(fixture.source->reserved, 0u);
    EXPECT_EQ(fixture.pool->statistics().cached, ByteCount{0});
    EXPECT_TRUE(fixture.pool->validate());
}

// Free memory that the system still backs makes room for memory without pages: a charge, and a block where free blocks are too small.
TEST(BlockPool, WarmMemoryGoesBackBeforeTheLimitIsExceeded) {
    const auto backed = [](const Fixture& fixture) {
        const auto now = fixture.pool->statistics();
        return now.live.value + now.deferred.value + now.cached.value;
    };
    for (const bool charges : {true, false}) {
        const Fixture fixture{{.region = 64 * MiB, .discards = true},
                              {.limit = ByteCount{16 * MiB}, .cache_max = ByteCount{256 * MiB}}};
        std::vector<Block> blocks;
        for (int i = 0; i < 16; ++i)
            blocks.push_back(fixture.take(MiB));
        for (size_t i = 0; i < 16; i += 2)
            fixture.pool->free(blocks[i], {});
        EXPECT_EQ(fixture.pool->statistics().cached, ByteCount{8 * MiB});
        EXPECT_EQ(fixture.source->discarded, 0u);
        for (int i = 0; i < 4; ++i) {
            if (charges) {
                ASSERT_TRUE(fixture.pool->charge(ByteCount{2 * MiB}));
            } else {
                blocks.push_back(fixture.take(2 * MiB));
            }
            EXPECT_LE(backed(fixture), 16 * MiB) << i;
        }
        EXPECT_FALSE(fixture.pool->charge(ByteCount{1}));
        EXPECT_TRUE(fixture.pool->validate());
        EXPECT_EQ(fixture.source->discarded, 8 * MiB);
    }
}

// Random blocks with random timepoints: no two that are live or deferred overlap, and the figures add up.
TEST(BlockPoolProperty, LiveAndDeferredBlocksNeverOverlap) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
        std::mt19937_64 random{seed};
        const Fixture fixture{{.capacity = 4 * MiB, .region = seed % 2 == 0 ? 4 * MiB : MiB, .discards = seed % 4 < 2},
                              {.cache_max = ByteCount{MiB}}};
        FakeQueue queues[3];
        struct Held {
            Block block;
            std::vector<driver::Timepoint> after;  // empty: live
        };
        std::vector<Held> held;
        const auto is_busy = [](const Held& entry) {
            return entry.after.empty() || std::any_of(entry.after.begin(), entry.after.end(),
                                                      [](const auto& point) { return !point.is_complete(); });
        };
        for (int step = 0; step < 1500; ++step) {
            if (random() % 8 == 0) {
                auto& queue = queues[random() % 3];
                queue.complete(queue.completed() + random() % 8);
            }
            std::erase_if(held, [&](const Held& entry) { return !is_busy(entry); });
            if (random() % 2 == 0) {
                const auto block = fixture.pool->allocate(ByteCount{1 + random() % (200 * KiB)},
                                                          Alignment{uint64_t{1} << (random() % 14)},
                                                          random() % 8 == 0 ? WhenFull::wait : WhenFull::fail);
                if (block) {
                    for (const Held& other : held)
                        ASSERT_TRUE(!is_busy(other) ||
                                    other.block.address.value + other.block.size.value <= block->address.value ||
                                    block->address.value + block->size.value <= other.block.address.value)
                            << "seed " << seed << " step " << step;
                    held.push_back({*block, {}});
                }
            } else if (!held.empty()) {
                Held& entry = held[random() % held.size()];
                if (entry.after.empty()) {
                    for (auto& queue : queues)
                        entry.after.push_back(queue.at(queue.completed() + random() % 20));
                    fixture.pool->free(entry.block, entry.after);
                }
            }
            ASSERT_TRUE(fixture.pool->validate()) << "seed " << seed << " step " << step;
        }
    }
}

TEST(BlockPool, ThreadsAllocateAndFreeAtOnce) {
    const Fixture fixture{{.capacity = 64 * MiB, .region = 8 * MiB}};
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    for (uint64_t seed = 0; seed < 4; ++seed)
        threads.emplace_back([&fixture, &refused, seed] {
            std::mt19937_64 random{seed};
            std::vector<Block> mine;
            for (int step = 0; step < 5000; ++step) {
                if (mine.size() < 50 && random() % 2 == 0) {
                    if (const auto block = fixture.pool->allocate(ByteCount{1 + random() % (64 * KiB)}, aligned))
                        mine.push_back(*block);
                    else
                        ++refused;
                } else if (!mine.empty()) {
                    fixture.pool->free(mine.back(), {});
                    mine.pop_back();
                }
            }
            for (const Block& block : mine)
                fixture.pool->free(block, {});
        });
    for (auto& thread : threads)
        thread.join();
    EXPECT_EQ(refused, 0);
    EXPECT_EQ(fixture.pool->statistics().live, ByteCount{0});
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(HostPool, BlocksCanBeWrittenAndReadInTheirWholeLength) {
    const auto pool = make_host_allocator({});
    std::vector<Block> blocks;
    for (const uint64_t size : {uint64_t{1}, 4 * KiB, 3 * MiB, 100 * MiB}) {
        const auto block = pool->allocate(ByteCount{size}, Alignment{4096});
        ASSERT_TRUE(block) << block.error().detail();
        EXPECT_EQ(block->address.value % 4096, 0u);
        std::memset(block->address.host(), static_cast<int>(blocks.size() + 1), size);
        blocks.push_back(*block);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
        EXPECT_EQ(*blocks[i].address.host(), static_cast<std::byte>(i + 1));
        EXPECT_EQ(blocks[i].address.host()[blocks[i].size.value - 1], static_cast<std::byte>(i + 1));
        pool->free(blocks[i], {});
    }
    pool->trim();
    EXPECT_EQ(pool->statistics().reserved, ByteCount{0});
}

TEST(HostPool, DiscardedMemoryReadsAsZeroesAndCanBeUsedAgain) {
    const auto pool = make_host_allocator({});
    const auto guard = *pool->allocate(ByteCount{1}, aligned);
    const auto block = *pool->allocate(ByteCount{8 * MiB}, aligned);
    std::memset(block.address.host(), 1, block.size.value);
    pool->free(block, {});
    pool->trim();
    const auto again = *pool->allocate(ByteCount{8 * MiB}, aligned);
    EXPECT_EQ(again.address, block.address);
    EXPECT_EQ(again.address.host()[4 * MiB], std::byte{0});
    std::memset(again.address.host(), 2, again.size.value);
    pool->free(again, {});
    pool->free(guard, {});
}

TEST(HostPool, MoreThanTheMachineHasIsRefused) {
    const auto pool = make_host_allocator({});
    const auto block = pool->allocate(ByteCount{HostRegionSource::total().value + 1}, aligned);
    ASSERT_FALSE(block);
    EXPECT_THAT(std::string(block.error().detail()), HasSubstr("the limit does not allow more"));
    EXPECT_GT(pool->free_bytes().value, 0u);
    EXPECT_LE(pool->free_bytes(), pool->limit());
}

// Rows of 4096 bytes in several buffers would else be in the same sets of the first-level cache.
TEST(HostPool, LargeBlocksBeginApartModuloAPage_AlsoAloneInTheirRegions) {
    for (const uint64_t bytes : {32 * KiB, 4 * MiB, 80 * MiB}) {
        const auto pool = make_host_allocator({});
        std::vector<Block> blocks;
        for (int i = 0; i < 5; ++i)
            blocks.push_back(*pool->allocate(ByteCount{bytes}, aligned));
        for (const Block& a : blocks)
            for (const Block& b : blocks) {
                const uint64_t apart = (a.address.value - b.address.value) % 4096;
                EXPECT_TRUE(&a == &b || (apart >= 384 && apart <= 4096 - 384)) << bytes << ": " << apart;
            }
        for (const Block& block : blocks)
            pool->free(block, {});
        EXPECT_TRUE(pool->validate());
    }
}

#if defined(__SANITIZE_ADDRESS__)
TEST(HostPoolDeathTest, UseAfterFreeAndOverrunAreCaught) {
    const auto pool = make_host_allocator({});
    const auto block = *pool->allocate(ByteCount{100}, aligned);
    volatile std::byte* bytes = block.address.host();
    bytes[99] = std::byte{1};
    EXPECT_DEATH(bytes[100] = std::byte{1}, "use-after-poison");
    pool->free(block, {});
    EXPECT_DEATH(bytes[0] = std::byte{1}, "use-after-poison");
}
#endif

}  // namespace
}  // namespace polder::memory
