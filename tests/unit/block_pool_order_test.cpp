// Which request gets memory when, and what a pool does without its lock and without host memory.
#include "support/no_memory.h"
#include "support/pool_fixture.h"

#include <atomic>
#include <chrono>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace polder::memory {
namespace {

using namespace test;

constexpr LeaseTerms on_device{LeaseTerms::Consumer::device};

// A thread that allocates and frees small blocks without end must not take the memory that another thread waits for.
TEST(BlockPool, RequestThatWaitsIsServedBeforeLaterOnes) {
    const Fixture fixture{{.capacity = 8 * MiB, .region = 8 * MiB}};
    FakeQueue queue;
    uint64_t value = 0;
    const auto churn = [&](uint64_t rounds) {
        for (uint64_t i = 0; i < rounds; ++i) {
            const auto block = fixture.pool->allocate(ByteCount{MiB}, aligned, WhenFull::fail);
            if (!block)
                return false;
            const driver::Timepoint after[] = {queue.at(++value)};
            fixture.pool->free(*block, after);
        }
        return true;
    };
    ASSERT_TRUE(churn(8));
    // Without turns, other threads would take the memory that the wait releases.
    queue.on_wait = [&] {
        queue.complete(queue.waited.back());
        if (queue.waited.size() < 100)
            static_cast<void>(churn(1));
    };
    static_cast<void>(fixture.take(6 * MiB));
    EXPECT_EQ(queue.waited, (std::vector<uint64_t>{1, 2, 3, 4, 5, 6}));
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BlockPool, RequestsThatWaitAreServedInTheOrderInWhichTheyCame) {
    const Fixture fixture{{.capacity = 4 * MiB, .region = 4 * MiB}};
    FakeQueue queue;
    for (uint64_t value = 1; value <= 4; ++value) {
        const driver::Timepoint after[] = {queue.at(value)};
        fixture.pool->free(fixture.take(MiB), after);
    }
    std::thread other;
    std::atomic<bool> started{false};
    std::atomic<bool> served{false};
    const std::thread::id first = std::this_thread::get_id();
    queue.on_wait = [&] {
        if (std::this_thread::get_id() != first)
            return;
        if (!other.joinable())
            other = std::thread([&] {
                started = true;
                EXPECT_TRUE(fixture.pool->allocate(ByteCount{MiB}, aligned));
                served = true;
            });
        while (!started)
            std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(served);
    };
    static_cast<void>(fixture.take(3 * MiB));
    other.join();
    EXPECT_TRUE(served);
    // The last one is the other thread's.
    EXPECT_EQ(queue.waited, (std::vector<uint64_t>{1, 2, 3, 4}));
}

// The first request must not take the pending block in the middle, though it fits there.
TEST(BlockPool, GroupOfRequestsFindsRoomInPendingMemory) {
    const Fixture fixture{{.capacity = 40 * MiB, .region = 40 * MiB}};
    FakeQueue queue;
    std::vector<Block> blocks;
    for (const uint64_t size : {12, 16, 12})
        blocks.push_back(fixture.take(size * MiB));
    for (uint64_t i = 0; i < blocks.size(); ++i) {
        const driver::Timepoint after[] = {queue.at(1 + i)};
        fixture.pool->free(blocks[i], after);
    }
    const LeaseRequest pair[] = {{ByteCount{16 * MiB}, aligned}, {ByteCount{24 * MiB}, aligned}};
    Lease leases[2];
    ASSERT_TRUE(fixture.pool->lease(pair, {LeaseTerms::Consumer::device, nullptr, WhenFull::wait_for_turn}, leases));
    EXPECT_TRUE(queue.waited.empty());
    for (const Lease& leased : leases)
        EXPECT_FALSE(leased.after.empty());
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BlockPool, GroupOfRequestsGetsAllOrNothing) {
    const Fixture fixture{{.capacity = 64 * MiB, .region = 64 * MiB}};
    const LeaseRequest too_much[] = {{ByteCount{40 * MiB}, aligned}, {ByteCount{40 * MiB}, aligned}};
    Lease leases[2];
    const auto refused = fixture.pool->lease(too_much, on_device, leases);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status(), Status::mem_object_allocation_failure);
    EXPECT_EQ(fixture.pool->statistics().live, ByteCount{0});
    const LeaseRequest fits[] = {{ByteCount{40 * MiB}, aligned}, {ByteCount{24 * MiB}, aligned}};
    ASSERT_TRUE(fixture.pool->lease(fits, on_device, leases));
    EXPECT_EQ(fixture.pool->statistics().live, ByteCount{64 * MiB});
    for (const Lease& leased : leases)
        fixture.pool->free(leased.block, {});
    EXPECT_TRUE(fixture.pool->validate());
}

// Two groups of which only one fits: never half of each.
TEST(BlockPool, ConcurrentGroupsDoNotHoldAPartEach) {
    const Fixture fixture{{.capacity = 4 * MiB, .region = 4 * MiB}};
    std::atomic<int> granted{0};
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread)
        threads.emplace_back([&] {
            const LeaseRequest pair[] = {{ByteCount{2 * MiB}, aligned}, {ByteCount{2 * MiB}, aligned}};
            for (int round = 0; round < 2000; ++round) {
                Lease leases[2];
                if (!fixture.pool->lease(pair, on_device, leases)) {
                    ++refused;
                    continue;
                }
                ++granted;
                EXPECT_EQ(fixture.pool->statistics().live, ByteCount{4 * MiB});
                for (const Lease& leased : leases)
                    fixture.pool->free(leased.block, {});
            }
        });
    for (auto& thread : threads)
        thread.join();
    EXPECT_EQ(granted + refused, 4000);
    EXPECT_GT(granted, 0);
    EXPECT_EQ(fixture.pool->statistics().live, ByteCount{0});
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BlockPool, FreeingNeedsNoHostMemory) {
    const Fixture fixture{{.region = 64 * MiB}};
    constexpr size_t count = 3000;
    std::vector<FakeQueue> queues(20);
    std::vector<Block> blocks;
    for (size_t i = 0; i < count; ++i)
        blocks.push_back(fixture.take(KiB));
    polder::test::no_memory = true;
    for (size_t i = 0; i < count; ++i) {
        const driver::Timepoint after[] = {queues[i % 20].at(1 + i), queues[(i + 1) % 20].at(1 + i)};
        fixture.pool->free(blocks[i], after);
    }
    polder::test::no_memory = false;
    EXPECT_TRUE(fixture.pool->validate());
    EXPECT_EQ(fixture.pool->statistics().deferred_blocks, count);
    for (FakeQueue& queue : queues) {
        EXPECT_TRUE(queue.waited.empty());
        queue.complete(count);
    }
    fixture.pool->drain();
    EXPECT_EQ(fixture.pool->statistics().deferred_blocks, 0u);
    EXPECT_EQ(fixture.pool->statistics().free, ByteCount{64 * MiB});
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BlockPool, FreeingAfterWorkOfVeryManyQueuesNeedsNoHostMemory) {
    const Fixture fixture{{.region = MiB}};
    std::vector<FakeQueue> queues(50);
    std::vector<driver::Timepoint> after;
    for (FakeQueue& queue : queues) {
        after.push_back(queue.at(1));
        queue.waited.reserve(1);
    }
    const Block block = fixture.take(MiB);
    polder::test::no_memory = true;
    fixture.pool->free(block, after);
    polder::test::no_memory = false;
    for (FakeQueue& queue : queues)
        queue.complete(1);
    EXPECT_EQ(fixture.take(MiB).address, block.address);
}

// The system's functions may take milliseconds: other threads use the pool meanwhile.
TEST(BlockPool, SourceIsCalledWithoutThePoolsLock) {
    const Fixture fixture{{.region = 8 * MiB, .discards = true}, {.cache_max = ByteCount{2 * MiB}}};
    std::set<std::string> seen;
    std::vector<std::future<void>> visitors;
    bool in_call = false;
    fixture.source->on_call = [&](const char* function) {
        if (std::exchange(in_call, true))
            return;
        visitors.push_back(std::async(std::launch::async, [&] { static_cast<void>(fixture.pool->limit()); }));
        EXPECT_EQ(visitors.back().wait_for(std::chrono::seconds(60)), std::future_status::ready) << function;
        seen.insert(function);
        in_call = false;
    };
    std::vector<Block> blocks;
    for (int i = 0; i < 12; ++i)
        blocks.push_back(fixture.take(MiB));
    static_cast<void>(fixture.pool->free_bytes());
    for (int i = 1; i < 12; ++i)
        fixture.pool->free(blocks[i], {});
    fixture.pool->trim();
    static_cast<void>(fixture.refusal(uint64_t{1} << 40));
    fixture.pool->free(blocks[0], {});
    fixture.pool->trim();
    EXPECT_THAT(seen, testing::UnorderedElementsAre("available", "discard", "release", "reserve"));
    fixture.source->on_call = nullptr;
}

// ---- threads, and the size of pages ----

TEST(BlockPool, ThreadsThatMeetKeepSmallBlocksOfTheirOwn_AndFiguresStayExact) {
    const Fixture fixture{{.capacity = 16 * MiB, .region = 16 * MiB}};
    // Until they meet at the lock: on a machine with one processor that takes a while.
    std::atomic<bool> wrong{false};
    std::vector<std::thread> threads;
    for (uint64_t seed = 0; seed < 8; ++seed)
        threads.emplace_back([&, seed] {
            std::vector<Block> mine;
            for (uint64_t step = 0; step < 20'000; ++step) {
                const uint64_t size = 1 + (step * 7919 + seed * 104'729) % (16 * KiB);
                const auto block = fixture.pool->allocate(ByteCount{size}, aligned);
                if (!block || block->place.size.value < size || !aligned.divides(block->address.value)) {
                    wrong = true;
                    return;
                }
                mine.push_back(*block);
                if (mine.size() == 4) {
                    for (const Block& each : mine)
                        fixture.pool->free(each, {});
                    mine.clear();
                }
            }
            for (const Block& each : mine)
                fixture.pool->free(each, {});
        });
    for (auto& thread : threads)
        thread.join();
    EXPECT_FALSE(wrong);
    const BlockPool::Statistics now = fixture.pool->statistics();
    EXPECT_EQ(now.live, ByteCount{0});
    EXPECT_EQ(now.live_blocks, 0u);
    EXPECT_EQ(now.free, ByteCount{16 * MiB});
    EXPECT_EQ(now.allocations, 160'000u);
    EXPECT_EQ(now.frees, 160'000u);
    EXPECT_TRUE(fixture.pool->validate());
    // Blocks that threads keep are available to a request that needs them.
    static_cast<void>(fixture.take(16 * MiB));
}

TEST(FrontCache, GivesTheNewestFittingBlock_AndMakesRoomForNewerOnes) {
    FrontCache cache;
    EXPECT_FALSE(cache.is_on());
    for (int i = 0; i < 100; ++i)
        cache.note_contention();
    ASSERT_TRUE(cache.is_on());
    std::set<uint64_t> given_back;
    const auto give_back = [&](std::span<const Block> spare) {
        for (const Block& block : spare)
            given_back.insert(block.address.value);
    };
    for (uint64_t i = 0; i < 20; ++i)
        EXPECT_TRUE(cache.put({DeviceAddress{i}, ByteCount{i}, 0, {i, ByteCount{KiB}, 0}}, give_back));
    EXPECT_FALSE(cache.put({DeviceAddress{99}, ByteCount{1}, 0, {99, ByteCount{MiB}, 0}}, give_back)) << "too large";
    EXPECT_EQ(given_back, (std::set<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(cache.held().blocks, 12u);
    EXPECT_EQ(cache.held().bytes, 12 * KiB);
    const auto even = [](const Block& block) { return block.address.value % 2 == 0; };
    EXPECT_EQ(cache.take(even)->address.value, 18u);
    EXPECT_EQ(cache.take(even)->address.value, 16u);
    EXPECT_EQ(cache.take([](const Block&) { return true; })->address.value, 19u);
    EXPECT_FALSE(cache.take([](const Block& block) { return block.address.value == 3; }));
    uint64_t flushed = 0;
    cache.flush([&](std::span<const Block> blocks) { flushed += blocks.size(); });
    EXPECT_EQ(flushed, 9u);
    EXPECT_EQ(cache.held().blocks, 0u);
}

// A system with large pages clears a whole one for the first byte that is used of it.
TEST(BlockPool, OnlyLargeBlocksWithoutPagesAreReportedToTheSource) {
    const Fixture fixture{{.region = 64 * MiB, .discards = true}};
    for (int i = 0; i < 100; ++i)
        static_cast<void>(fixture.take(34 * KiB));
    EXPECT_EQ(fixture.source->prepared, 0u);
    const Block large = fixture.take(16 * MiB);
    EXPECT_EQ(fixture.source->prepared, 16 * MiB);
    fixture.pool->free(large, {});
    static_cast<void>(fixture.take(16 * MiB));  // its pages are still there
    EXPECT_EQ(fixture.source->prepared, 16 * MiB);
}

TEST(BlockPool, StatisticsCountAllocationsRetriesAndFailures_AndPeaksBeginAgain) {
    const Fixture fixture{{.capacity = 8 * MiB, .region = 4 * MiB}};
    FakeQueue queue;
    const Block block = fixture.take(3 * MiB);
    fixture.pool->free(fixture.take(MiB), {});
    EXPECT_EQ(fixture.pool->statistics().inactive_split, ByteCount{MiB});
    const driver::Timepoint after[] = {queue.at(1)};
    fixture.pool->free(block, after);
    static_cast<void>(fixture.refusal(9 * MiB));
    EXPECT_EQ(fixture.pool->statistics().retries, 0u);  // it has waited in vain
    const Block all = fixture.take(8 * MiB);
    const BlockPool::Statistics now = fixture.pool->statistics();
    EXPECT_EQ(now.allocations, 3u);
    EXPECT_EQ(now.frees, 2u);
    EXPECT_EQ(now.retries, 1u);  // two regions became one
    EXPECT_EQ(now.out_of_memory, 1u);
    EXPECT_EQ(now.hits, 1u);
    EXPECT_EQ(now.reserved_peak, ByteCount{8 * MiB});
    EXPECT_EQ(now.live_peak, ByteCount{8 * MiB});
    fixture.pool->free(all, {});
    fixture.pool->trim();
    fixture.pool->reset_peaks();
    EXPECT_EQ(fixture.pool->statistics().live_peak, ByteCount{0});
    EXPECT_EQ(fixture.pool->statistics().reserved_peak, ByteCount{0});
}

// ---- memory in the order of queues ----

TEST(BlockPoolLease, SameQueueUsesAPendingBlockAgainAtOnce) {
    const Fixture fixture{{.capacity = 256 * MiB, .region = 256 * MiB}};
    FakeQueue queue;
    DeviceAddress first;
    for (uint64_t round = 1; round <= 10'000; ++round) {
        const auto leased = fixture.pool->lease({ByteCount{64 * MiB}, aligned}, {LeaseTerms::Consumer::device, &queue});
        ASSERT_TRUE(leased);
        if (round == 1)
            first = leased->block.address;
        ASSERT_EQ(leased->block.address, first);
        ASSERT_EQ(leased->after.size(), round == 1 ? 0u : 1u);
        const driver::Timepoint after[] = {queue.at(round)};
        fixture.pool->free(leased->block, after);
    }
    EXPECT_TRUE(queue.waited.empty());
    EXPECT_EQ(fixture.pool->statistics().live_peak, ByteCount{64 * MiB});
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(BlockPoolLease, OtherQueueWaitsOnItsDeviceWhenThereIsNothingElse) {
    const Fixture fixture{{.capacity = 64 * MiB, .region = 64 * MiB}};
    FakeQueue first, second;
    const driver::Timepoint after[] = {first.at(7)};
    fixture.pool->free(fixture.take(64 * MiB), after);
    const auto leased = fixture.pool->lease({ByteCount{64 * MiB}, aligned}, {LeaseTerms::Consumer::device, &second});
    ASSERT_TRUE(leased);
    ASSERT_EQ(leased->after.size(), 1u);
    EXPECT_EQ(leased->after[0], first.at(7));
    EXPECT_TRUE(first.waited.empty());
}

TEST(BlockPoolLease, OtherQueueTakesReadyMemoryFirst) {
    const Fixture fixture{{.capacity = 128 * MiB, .region = 128 * MiB}};
    FakeQueue first, second;
    const driver::Timepoint after[] = {first.at(7)};
    fixture.pool->free(fixture.take(64 * MiB), after);
    const auto leased = fixture.pool->lease({ByteCount{64 * MiB}, aligned}, {LeaseTerms::Consumer::device, &second});
    ASSERT_TRUE(leased);
    EXPECT_TRUE(leased->after.empty());
}

TEST(BlockPoolLease, PendingNeighboursAreMergedForALargerBlock) {
    const Fixture fixture{{.capacity = 4 * MiB, .region = 4 * MiB}};
    FakeQueue a, b;
    std::vector<Block> blocks;
    for (int i = 0; i < 4; ++i)
        blocks.push_back(fixture.take(MiB));
    for (uint64_t i = 0; i < 4; ++i) {
        const driver::Timepoint after[] = {(i % 2 ? a : b).at(i + 1)};
        fixture.pool->free(blocks[i], after);
    }
    const auto leased = fixture.pool->lease({ByteCount{3 * MiB}, aligned}, on_device);
    ASSERT_TRUE(leased);
    EXPECT_EQ(leased->after.size(), 3u);
    EXPECT_TRUE(a.waited.empty() && b.waited.empty());
    EXPECT_TRUE(fixture.pool->validate());
    // The rest still has its use: the host waits for it.
    const uint64_t other = leased->block.place.offset == 0 ? 4 : 1;
    FakeQueue& user = other % 2 == 0 ? a : b;
    static_cast<void>(fixture.take(MiB));
    EXPECT_EQ(user.waited, (std::vector<uint64_t>{other}));
    // A region with work in flight stays, even when it is empty.
    fixture.pool->free(leased->block, leased->after.view());
}

// The consumer's queue executes after them anyway, so this costs it nothing; another queue would have to wait.
TEST(BlockPoolLease, PendingNeighboursOfTheQueueAreUsedBeforeMoreIsReserved) {
    const Fixture fixture{{.capacity = 64 * MiB, .region = 4 * MiB}};
    FakeQueue queue, other;
    const LeaseTerms on_queue{LeaseTerms::Consumer::device, &queue, WhenFull::wait};
    const LeaseTerms on_other{LeaseTerms::Consumer::device, &other, WhenFull::wait};
    std::vector<Block> blocks;
    for (int i = 0; i < 4; ++i)
        blocks.push_back(fixture.take(MiB));
    for (uint64_t i = 0; i < 3; ++i) {
        const driver::Timepoint after[] = {queue.at(i + 1)};
        fixture.pool->free(blocks[i], after);
    }
    const auto elsewhere = fixture.pool->lease({ByteCount{3 * MiB}, aligned}, on_other);
    ASSERT_TRUE(elsewhere);
    EXPECT_TRUE(elsewhere->after.empty());
    EXPECT_EQ(fixture.source->reserves, 2);
    const Block rest = fixture.take(MiB);  // of the second region
    const auto leased = fixture.pool->lease({ByteCount{3 * MiB}, aligned}, on_queue);
    ASSERT_TRUE(leased);
    EXPECT_EQ(leased->block.address, blocks[0].address);
    EXPECT_EQ(leased->after.size(), 3u);
    EXPECT_EQ(fixture.source->reserves, 2);
    EXPECT_TRUE(queue.waited.empty());
    EXPECT_TRUE(fixture.pool->validate());
    for (const Block& block : {elsewhere->block, rest, leased->block, blocks[3]})
        fixture.pool->free(block, {});
}

// Blocks are not merged over a block between them, nor over a use on another queue.
TEST(BlockPoolLease, WhatIsInUseBetweenPendingBlocksStays) {
    const Fixture fixture{{.capacity = 64 * MiB, .region = 4 * MiB}};
    FakeQueue queue, other;
    const LeaseTerms on_queue{LeaseTerms::Consumer::device, &queue, WhenFull::wait};
    std::vector<Block> blocks;
    for (int i = 0; i < 4; ++i)
        blocks.push_back(fixture.take(MiB));
    const driver::Timepoint own[] = {queue.at(1)};
    const driver::Timepoint both[] = {queue.at(2), other.at(1)};
    fixture.pool->free(blocks[0], own);
    fixture.pool->free(blocks[1], both);
    fixture.pool->free(blocks[2], own);
    const auto leased = fixture.pool->lease({ByteCount{2 * MiB}, aligned}, on_queue);
    ASSERT_TRUE(leased);
    EXPECT_TRUE(leased->after.empty());
    EXPECT_EQ(fixture.source->reserves, 2);
    EXPECT_EQ(fixture.pool->statistics().deferred_blocks, 3u);
    for (const Block& block : {leased->block, blocks[3]})
        fixture.pool->free(block, {});
}

TEST(BlockPoolLease, RegionWithWorkInFlightIsNotGivenBack) {
    const Fixture fixture{{.capacity = 4 * MiB, .region = 4 * MiB}};
    FakeQueue queue;
    const driver::Timepoint after[] = {queue.at(1)};
    fixture.pool->free(fixture.take(2 * MiB), after);
    fixture.pool->free(fixture.take(2 * MiB), after);
    const auto leased = fixture.pool->lease({ByteCount{3 * MiB}, aligned}, on_device);
    ASSERT_TRUE(leased);
    fixture.pool->free(leased->block, {});
    fixture.pool->trim();
    EXPECT_EQ(fixture.source->releases, 0);
    queue.complete(1);
    fixture.pool->trim();
    EXPECT_EQ(fixture.source->releases, 1);
}

} // namespace
} // namespace polder::memory
