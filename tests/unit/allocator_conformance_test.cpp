// What every allocation policy promises. A policy joins with one line in support/allocator_fixture.h.
#include "../support/sanitizer.h"
#include "support/allocator_fixture.h"
#include "support/no_memory.h"

#include <gmock/gmock.h>
#include <random>
#include <thread>

namespace polder::memory {
namespace {

using namespace test;
using testing::HasSubstr;

template <class Policy>
class AllocatorConformance : public testing::Test {
protected:
    // Tests that are about a full memory use all of it in one block, whatever the policy rounds to.
    static constexpr uint64_t all = 64 * MiB;
    AllocatorFixture fixture{Policy::settings, {.capacity = all, .grows = Policy::grows}};
};
TYPED_TEST_SUITE(AllocatorConformance, AllPolicies);

TYPED_TEST(AllocatorConformance, NothingIsReservedBeforeTheFirstBlock) {
    EXPECT_EQ(this->fixture.source->reserved, 0u);
    const Block block = this->fixture.take(KiB);
    EXPECT_GT(this->fixture.source->reserved, 0u);
    this->fixture.pool->free(block, {});
    EXPECT_TRUE(this->fixture.pool->validate());
}

TYPED_TEST(AllocatorConformance, AddressesAreAlignedAndApart) {
    std::vector<Block> blocks;
    for (uint64_t alignment = 128; alignment <= MiB; alignment *= 2) {
        const auto block = this->fixture.pool->allocate(ByteCount{alignment / 2 + 1}, Alignment{alignment});
        ASSERT_TRUE(block) << alignment << ": " << block.error().detail();
        EXPECT_TRUE(Alignment{alignment}.divides(block->address.value));
        for (const Block& other : blocks)
            EXPECT_FALSE(range_of(*block).overlaps(range_of(other)));
        blocks.push_back(*block);
        EXPECT_TRUE(this->fixture.pool->validate());
    }
    for (const Block& block : blocks)
        this->fixture.pool->free(block, {});
    EXPECT_TRUE(this->fixture.pool->validate());
}

TYPED_TEST(AllocatorConformance, EmptyBlockIsABlock) {
    const Block a = this->fixture.take(0);
    const Block b = this->fixture.take(0);
    EXPECT_NE(a.address, b.address);
    this->fixture.pool->free(a, {});
    this->fixture.pool->free(b, {});
}

TYPED_TEST(AllocatorConformance, FreedBlockIsUsedAgain_WithoutReservingMore) {
    for (const uint64_t size : {KiB, 3 * MiB, 24 * MiB}) {
        const Block block = this->fixture.take(size);
        const uint64_t reserved = this->fixture.source->reserved;
        this->fixture.pool->free(block, {});
        const Block again = this->fixture.take(size);
        EXPECT_EQ(again.address, block.address);
        EXPECT_EQ(this->fixture.source->reserved, reserved);
        this->fixture.pool->free(again, {});
        this->fixture.pool->trim();
    }
}

TYPED_TEST(AllocatorConformance, WholeMemoryInOneBlock) {
    const Block block = this->fixture.take(this->all);
    EXPECT_FALSE(this->fixture.has_room(1));
    this->fixture.pool->free(block, {});
    EXPECT_TRUE(this->fixture.has_room(this->all));
}

TYPED_TEST(AllocatorConformance, SmallBlocksDoNotKeepALargeOneOut) {
    for (const uint64_t size : {uint64_t{1}, 100 * KiB, 3 * MiB, 15 * MiB})
        this->fixture.pool->free(this->fixture.take(size), {});
    const Block block = this->fixture.take(this->all);
    this->fixture.pool->free(block, {});
}

TYPED_TEST(AllocatorConformance, RefusalReportsItself_AndTheAllocatorGoesOnWorking) {
    const Block block = this->fixture.take(40 * MiB);
    const auto refused = this->fixture.pool->allocate(ByteCount{40 * MiB}, aligned);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status(), Status::mem_object_allocation_failure);
    EXPECT_THAT(std::string(refused.error().detail()), HasSubstr("asked for 41943040 bytes"));
    EXPECT_THAT(std::string(refused.error().detail()), HasSubstr("the device is full"));
    EXPECT_EQ(this->fixture.now().out_of_memory, 1u);
    this->fixture.pool->free(block, {});
    EXPECT_TRUE(this->fixture.has_room(40 * MiB));
    EXPECT_TRUE(this->fixture.pool->validate());
}

TYPED_TEST(AllocatorConformance, SizesNearTheEndOfTheAddressSpaceAreRefused) {
    for (const uint64_t size : {UINT64_MAX, UINT64_MAX - 4096, uint64_t{1} << 63})
        EXPECT_FALSE(this->fixture.has_room(size));
    EXPECT_TRUE(this->fixture.pool->validate());
}

// --- the order of queues ---

TYPED_TEST(AllocatorConformance, BlockInFlightIsReusedOnItsQueueWithoutWaiting) {
    FakeQueue queue;
    for (uint64_t round = 1; round <= 100; ++round) {
        const Lease leased = this->fixture.lease_on(queue, 48 * MiB);
        for (const driver::Timepoint& point : leased.after)
            EXPECT_EQ(point.queue, &queue);
        const driver::Timepoint used = queue.at(round);
        this->fixture.pool->free(leased.block, {&used, 1});
    }
    EXPECT_TRUE(queue.waited.empty());
    EXPECT_LE(this->fixture.source->reserved, this->all);
    EXPECT_TRUE(this->fixture.pool->validate());
}

TYPED_TEST(AllocatorConformance, HostNeverGetsABlockInFlight) {
    FakeQueue queue;
    const Lease leased = this->fixture.lease_on(queue, 48 * MiB);
    const driver::Timepoint used = queue.at(1);
    this->fixture.pool->free(leased.block, {&used, 1});
    EXPECT_FALSE(this->fixture.has_room(48 * MiB));
    EXPECT_EQ(queue.completed(), 0u);
    const Block block = this->fixture.take(48 * MiB);  // waits
    EXPECT_EQ(queue.completed(), 1u);
    this->fixture.pool->free(block, {});
}

TYPED_TEST(AllocatorConformance, BlockWaitsForEveryQueueThatUsesIt) {
    FakeQueue a, b;
    const Lease leased = this->fixture.lease_on(a, 48 * MiB);
    const driver::Timepoint used[] = {a.at(3), b.at(5)};
    this->fixture.pool->free(leased.block, used);
    a.complete(3);
    this->fixture.pool->drain();
    EXPECT_FALSE(this->fixture.has_room(48 * MiB));
    b.complete(5);
    this->fixture.pool->drain();
    EXPECT_EQ(this->fixture.now().deferred.value, 0u);
    EXPECT_TRUE(this->fixture.has_room(48 * MiB));
}

TYPED_TEST(AllocatorConformance, FullMemoryServesAnotherQueue_ThatWaitsWhereItMust) {
    FakeQueue a, b;
    const Lease first = this->fixture.lease_on(a, 48 * MiB);
    const driver::Timepoint used = a.at(7);
    this->fixture.pool->free(first.block, {&used, 1});
    const Lease second = this->fixture.lease_on(b, 48 * MiB);
    bool ordered = used.is_complete();
    for (const driver::Timepoint& point : second.after)
        ordered = ordered || (point.queue == &a && point.value >= 7);
    EXPECT_TRUE(ordered);
    this->fixture.pool->free(second.block, {});
    EXPECT_TRUE(this->fixture.pool->validate());
}

// --- groups, limits, figures ---

TYPED_TEST(AllocatorConformance, GroupGetsAllOrNothing) {
    const LeaseRequest requests[] = {
        {ByteCount{20 * MiB}, aligned}, {ByteCount{20 * MiB}, aligned}, {ByteCount{40 * MiB}, aligned}};
    Lease leases[3];
    EXPECT_FALSE(this->fixture.pool->lease(requests, {}, leases));
    EXPECT_EQ(this->fixture.now().live_blocks, 0u);
    EXPECT_TRUE(this->fixture.has_room(this->all));
    EXPECT_TRUE(this->fixture.pool->lease(std::span{requests}.first(2), {}, std::span{leases}.first(2)));
    for (const Lease& leased : std::span{leases}.first(2))
        this->fixture.pool->free(leased.block, {});
}

TYPED_TEST(AllocatorConformance, LimitBoundsWhatIsInUse) {
    const Block block = this->fixture.take(MiB);
    this->fixture.pool->set_limit(this->fixture.now().live);
    const auto refused = this->fixture.pool->allocate(ByteCount{1}, aligned);
    ASSERT_FALSE(refused);
    EXPECT_THAT(std::string(refused.error().detail()), HasSubstr("the limit does not allow more"));
    EXPECT_EQ(this->fixture.pool->free_bytes().value, 0u);
    this->fixture.pool->free(block, {});
    EXPECT_TRUE(this->fixture.has_room(MiB));
    EXPECT_FALSE(this->fixture.has_room(2 * MiB));
}

TYPED_TEST(AllocatorConformance, FreeBytesIsWhatALeaseCanGet) {
    const Block block = this->fixture.take(16 * MiB);
    const uint64_t free = this->fixture.pool->free_bytes().value;
    EXPECT_LE(free, 48 * MiB);
    EXPECT_GE(free, 40 * MiB);
    this->fixture.pool->free(block, {});
    EXPECT_EQ(this->fixture.pool->free_bytes().value, this->all);
}

TYPED_TEST(AllocatorConformance, StatisticsCount) {
    const Allocator& pool = *this->fixture.pool;
    std::vector<Block> blocks;
    for (int i = 0; i < 10; ++i)
        blocks.push_back(this->fixture.take(MiB));
    Allocator::Statistics now = pool.statistics();
    EXPECT_EQ(now.live_blocks, 10u);
    EXPECT_EQ(now.allocations, 10u);
    EXPECT_EQ(now.frees, 0u);
    EXPECT_GE(now.live.value, 10 * MiB);
    EXPECT_EQ(now.reserved.value, this->fixture.source->reserved);
    EXPECT_EQ(now.live.value + now.deferred.value + now.free.value, now.reserved.value);
    EXPECT_EQ(now.live_peak, now.live);
    const uint64_t peak = now.live_peak.value;
    for (size_t i = 0; i < 9; ++i)
        this->fixture.pool->free(blocks[i], {});
    now = pool.statistics();
    EXPECT_EQ(now.frees, 9u);
    EXPECT_EQ(now.live_blocks, 1u);
    EXPECT_EQ(now.live_peak.value, peak);
    EXPECT_LE(now.inactive_split, now.free);
    EXPECT_GT(now.largest_free.value, 0u);
    this->fixture.pool->reset_peaks();
    now = pool.statistics();
    EXPECT_EQ(now.live_peak, now.live);
    EXPECT_EQ(now.reserved_peak, now.reserved);
    this->fixture.pool->free(blocks[9], {});
    EXPECT_EQ(pool.statistics().live.value, 0u);
}

TYPED_TEST(AllocatorConformance, PeaksAreResetApart) {
    this->fixture.pool->free(this->fixture.take(24 * MiB), {});
    this->fixture.pool->trim();
    const Allocator::Statistics before = this->fixture.now();
    EXPECT_GE(before.live_peak.value, 24 * MiB);
    EXPECT_GE(before.reserved_peak.value, 24 * MiB);
    this->fixture.pool->reset_peak(Allocator::Peak::live);
    EXPECT_EQ(this->fixture.now().live_peak.value, 0u);
    EXPECT_EQ(this->fixture.now().reserved_peak, before.reserved_peak);
    const Block block = this->fixture.take(MiB);
    const uint64_t live_peak = this->fixture.now().live_peak.value;
    EXPECT_GE(live_peak, MiB);
    this->fixture.pool->free(block, {});
    this->fixture.pool->trim();
    this->fixture.pool->reset_peak(Allocator::Peak::reserved);
    EXPECT_EQ(this->fixture.now().reserved_peak.value, 0u);
    EXPECT_EQ(this->fixture.now().live_peak.value, live_peak);
}

// A retry had memory given back or waited for, and succeeded.
TYPED_TEST(AllocatorConformance, RetriesAndFailuresAreCounted) {
    FakeQueue queue;
    const Lease leased = this->fixture.lease_on(queue, this->all);
    EXPECT_EQ(this->fixture.now().retries, 0u);
    EXPECT_FALSE(this->fixture.has_room(KiB));
    EXPECT_EQ(this->fixture.now().retries, 0u);
    EXPECT_EQ(this->fixture.now().out_of_memory, 1u);
    const driver::Timepoint used = queue.at(1);
    this->fixture.pool->free(leased.block, {&used, 1});
    const Block waited = this->fixture.take(this->all);  // the host waits for the queue
    EXPECT_EQ(this->fixture.now().retries, 1u);
    this->fixture.pool->free(waited, {});
    this->fixture.pool->free(this->fixture.take(this->all), {});
    EXPECT_EQ(this->fixture.now().retries, 1u);
    EXPECT_EQ(this->fixture.now().out_of_memory, 1u);
}

TYPED_TEST(AllocatorConformance, PendingBlocksAreCountedApart) {
    FakeQueue a, b;
    const Lease leased = this->fixture.lease_on(a, MiB);
    const driver::Timepoint used = b.at(1);
    this->fixture.pool->free(leased.block, {&used, 1});
    EXPECT_EQ(this->fixture.now().live.value, 0u);
    EXPECT_GE(this->fixture.now().deferred.value, MiB);
    EXPECT_EQ(this->fixture.now().deferred_blocks, 1u);
    b.complete(1);
    this->fixture.pool->drain();
    EXPECT_EQ(this->fixture.now().deferred.value, 0u);
}

TYPED_TEST(AllocatorConformance, DrainFreesAllBlocksThatAreDone_HoweverManyAndNoOthers) {
    FakeQueue a, b;
    const uint32_t done = 3 * drained_at_most + 1;
    std::vector<Lease> leases;
    for (uint32_t block = 0; block != done + 1; ++block)
        leases.push_back(this->fixture.lease_on(a, 64 * KiB));
    for (uint32_t block = 0; block != done + 1; ++block) {
        const driver::Timepoint used = b.at(block + 1);
        this->fixture.pool->free(leases[block].block, {&used, 1});
    }
    ASSERT_EQ(this->fixture.now().deferred_blocks, done + 1);
    b.complete(done);
    this->fixture.pool->drain();
    EXPECT_EQ(this->fixture.now().deferred_blocks, 1u);
    b.complete(done + 1);
    this->fixture.pool->drain();
    EXPECT_EQ(this->fixture.now().deferred_blocks, 0u);
    EXPECT_TRUE(this->fixture.pool->validate());
}

TYPED_TEST(AllocatorConformance, TrimGivesEverythingUnusedBack) {
    std::vector<Block> blocks;
    for (const uint64_t size : {KiB, 100 * KiB, 3 * MiB, 12 * MiB})
        blocks.push_back(this->fixture.take(size));
    for (const Block& block : blocks)
        this->fixture.pool->free(block, {});
    this->fixture.pool->trim();
    EXPECT_EQ(this->fixture.source->reserved, 0u);
    EXPECT_EQ(this->fixture.now().reserved.value, 0u);
    EXPECT_TRUE(this->fixture.pool->validate());
}

TYPED_TEST(AllocatorConformance, EverythingGoesBackToTheSourceAtTheEnd) {
    struct Counting {
        uint64_t reserved = 1;
        int ranges = 1;
    };
    static Counting counted;
    class Watched final : public RegionSource {
    public:
        explicit Watched(bool grows) : inner_({.grows = grows}) {}
        ~Watched() override { counted = {inner_.reserved, inner_.address_ranges}; }
        Result<driver::Memory> reserve(ByteCount size) override { return inner_.reserve(size); }
        void release(driver::Memory memory) override { inner_.release(memory); }
        ByteCount preferred_size(ByteCount a, ByteCount b) const override { return inner_.preferred_size(a, b); }
        ByteCount available() const override { return inner_.available(); }
        GrowableRegions* growable() override { return inner_.growable(); }

    private:
        FakeSource inner_;
    };
    {
        AllocatorOptions options;
        options.space = SpaceId{1};  // the host's memory would be poisoned for the address sanitizer; this is made up
        const auto pool = make_allocator(parse_policy(TypeParam::settings, "").policy,
                                         std::make_unique<Watched>(TypeParam::grows), options);
        const auto block = pool->allocate(ByteCount{3 * MiB}, aligned);
        ASSERT_TRUE(block);
        pool->free(*block, {});
        pool->trim();
    }
    EXPECT_EQ(counted.reserved, 0u);
    EXPECT_EQ(counted.ranges, 0);
}

TYPED_TEST(AllocatorConformance, FreeingNeedsNoHostMemory) {
    FakeQueue queue;
    std::vector<Lease> leases;
    for (int i = 0; i < 200; ++i)
        leases.push_back(this->fixture.lease_on(queue, 1 + static_cast<uint64_t>(i) * 997));
    const driver::Timepoint used = queue.at(1);
    polder::test::no_memory = true;
    for (size_t i = 0; i < leases.size(); ++i)
        this->fixture.pool->free(leases[i].block, {&used, i % 2});
    polder::test::no_memory = false;
    queue.complete(1);
    this->fixture.pool->drain();
    EXPECT_EQ(this->fixture.now().live.value + this->fixture.now().deferred.value, 0u);
    EXPECT_TRUE(this->fixture.pool->validate());
}

// Each allocation of host memory that a group of requests makes fails in turn, beside each number of blocks: lists grow at some of them.
TYPED_TEST(AllocatorConformance, HostMemoryThatRunsOutLosesNoDeviceMemory) {
    if (polder::test::has_thread_sanitizer)
        GTEST_SKIP() << "the thread sanitizer has an operator new of its own, which does not fail";
    const std::vector<std::vector<LeaseRequest>> groups = {
        {{ByteCount{24 * MiB}, aligned}},
        {{ByteCount{64 * KiB}, aligned}, {ByteCount{64 * KiB}, aligned}, {ByteCount{64 * KiB}, aligned}},
        {{ByteCount{KiB}, aligned}, {ByteCount{3 * MiB}, aligned}, {ByteCount{24 * MiB}, aligned}}};
    int failures = 0;
    for (const std::vector<LeaseRequest>& requests : groups) {
        for (size_t live = 0; live < 140; live += live < 56 || live > 70 ? 7 : 1) {
            bool has_failed = true;
            for (int64_t n = 0; has_failed; ++n) {
                SCOPED_TRACE(std::to_string(requests.size()) + " requests beside " + std::to_string(live) +
                             " blocks, call " + std::to_string(n));
                const AllocatorFixture fresh{TypeParam::settings, {.capacity = this->all, .grows = TypeParam::grows}};
                std::vector<Block> blocks;
                while (blocks.size() < live)
                    blocks.push_back(fresh.take(64 * KiB));
                std::vector<Lease> leases(requests.size());
                const auto lease = [&] { return fresh.pool->lease(requests, {}, leases).has_value(); };
                has_failed = false;
                polder::test::calls_before_failure = n;
                try {
                    EXPECT_TRUE(lease());
                } catch (const std::bad_alloc&) {
                    has_failed = true;
                }
                polder::test::calls_before_failure = -1;
                failures += has_failed;
                EXPECT_EQ(fresh.now().live_blocks, live + (has_failed ? 0 : requests.size()));
                EXPECT_EQ(fresh.now().reserved.value, fresh.source->reserved);
                EXPECT_TRUE(fresh.pool->validate());
                if (has_failed) {
                    EXPECT_TRUE(lease());
                }
                // As many blocks as without a failure.
                EXPECT_LE(fresh.source->address_ranges, TypeParam::grows ? 2 : 0);
                for (const Lease& leased : leases)
                    blocks.push_back(leased.block);
                for (const Block& block : blocks)
                    fresh.pool->free(block, {});
                fresh.pool->trim();
                EXPECT_EQ(fresh.now().live_blocks, 0u);
                EXPECT_EQ(fresh.now().reserved.value, 0u);
                EXPECT_EQ(fresh.source->reserved, 0u);
                ASSERT_FALSE(testing::Test::HasFailure());
            }
        }
    }
    EXPECT_GT(failures, 10);
}

TYPED_TEST(AllocatorConformance, ThreadsAllocateAndFreeAtOnce) {
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number)
        threads.emplace_back([this, number] {
            std::mt19937_64 random(number);
            std::vector<Block> blocks;
            for (int i = 0; i < 3000; ++i) {
                if (blocks.size() < 20 && random() % 2 == 0) {
                    const auto block = this->fixture.pool->allocate(ByteCount{1 + random() % (300 * KiB)}, aligned);
                    if (block)
                        blocks.push_back(*block);
                } else if (!blocks.empty()) {
                    this->fixture.pool->free(blocks.back(), {});
                    blocks.pop_back();
                }
            }
            for (const Block& block : blocks)
                this->fixture.pool->free(block, {});
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(this->fixture.now().live.value, 0u);
    EXPECT_TRUE(this->fixture.pool->validate());
}

}  // namespace
}  // namespace polder::memory
