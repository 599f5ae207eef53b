// Regions that grow in place: pages of holes go back before more are committed, and are committed again where they are missing.
#include "support/no_memory.h"
#include "support/pool_fixture.h"

#include <random>

namespace polder::memory {
namespace {

using namespace test;

struct GrowingPool : testing::Test {
    [[nodiscard]] Block take(uint64_t size) { return fixture.take(size); }
    void give(const Block& block) { fixture.pool->free(block, {}); }
    [[nodiscard]] uint64_t reserved() const {
        EXPECT_EQ(fixture.pool->statistics().reserved.value, fixture.source->reserved);
        return fixture.source->reserved;
    }
    void TearDown() override { EXPECT_TRUE(fixture.pool->validate()); }

    Fixture fixture{{.grows = true}};
};

// A hole that is too small for the request does not count: its pages move to where the request is.
TEST_F(GrowingPool, PagesOfAHoleGoBackBeforeTheRegionGrows) {
    const Block first = take(64 * MiB);
    const Block between = take(page_of_source);
    give(first);
    const Block larger = take(96 * MiB);
    EXPECT_LE(reserved(), 98 * MiB + page_of_source);
    EXPECT_LE(fixture.pool->statistics().reserved_peak.value, 98 * MiB + page_of_source);
    EXPECT_TRUE(fixture.source->has_memory(larger) && fixture.source->has_memory(between));
    give(larger);
    give(between);
}

TEST_F(GrowingPool, AHoleWithoutPagesIsUsedAgain) {
    const Block first = take(64 * MiB);
    const Block between = take(page_of_source);
    give(first);
    const Block larger = take(96 * MiB);
    const Block again = take(64 * MiB);
    EXPECT_EQ(again.address, first.address);
    EXPECT_TRUE(fixture.source->has_memory(again));
    EXPECT_LE(reserved(), 162 * MiB + page_of_source);
    for (const Block& block : {between, larger, again})
        give(block);
    fixture.pool->trim();
    EXPECT_EQ(reserved(), 0u);
}

// Half of the memory is free, in pages that do not touch.
TEST(GrowingPoolThatIsFull, ScatteredPagesMakeRoomForALargeBlock) {
    Fixture fixture{{.capacity = 64 * MiB, .grows = true}};
    std::vector<Block> blocks;
    for (int i = 0; i < 32; ++i)
        blocks.push_back(fixture.take(page_of_source));
    for (size_t i = 0; i < blocks.size(); i += 2)
        fixture.pool->free(blocks[i], {});
    const Block large = fixture.take(32 * MiB);
    EXPECT_TRUE(fixture.source->has_memory(large));
    EXPECT_EQ(fixture.source->reserved, 64 * MiB);
    EXPECT_EQ(fixture.source->decommitted, 32 * MiB);
    // Where there are too few pages, none was moved.
    EXPECT_NE(fixture.refusal(page_of_source, WhenFull::fail), "");
    EXPECT_EQ(fixture.source->decommitted, 32 * MiB);
    fixture.pool->free(large, {});
    EXPECT_TRUE(fixture.pool->validate());
}

TEST(GrowingPoolThatIsFull, PagesStayWhereTooFewAreIdle) {
    Fixture fixture{{.capacity = 64 * MiB, .grows = true}};
    std::vector<Block> blocks;
    for (int i = 0; i < 32; ++i)
        blocks.push_back(fixture.take(page_of_source));
    fixture.pool->free(blocks[4], {});
    fixture.pool->free(blocks[8], {});
    EXPECT_NE(fixture.refusal(3 * page_of_source, WhenFull::fail), "");
    EXPECT_EQ(fixture.source->decommitted, 0u);
    EXPECT_TRUE(fixture.pool->validate());
}

// Four blocks in a memory of 64 MiB, of which two were released for a larger one: there are gaps among the free memory when all is released.
struct PoolWithGaps {
    PoolWithGaps() {
        std::vector<Block> blocks;
        for (int i = 0; i < 4; ++i)
            blocks.push_back(fixture.take(block_bytes));
        fixture.pool->free(blocks[0], {});
        fixture.pool->free(blocks[2], {});
        last = {blocks[1], blocks[3], fixture.take(block_bytes / 2 * 3)};
    }
    static constexpr uint64_t block_bytes = 15 * MiB + page_of_source / 4;
    Fixture fixture{{.capacity = 64 * MiB, .grows = true}};
    std::vector<Block> last;
};

TEST(GrowingPoolThatIsFull, AllOfAMemoryWithoutBlocksIsThere) {
    for (uint64_t size = page_of_source; size <= 64 * MiB; size += page_of_source / 2) {
        PoolWithGaps pool;
        for (const Block& block : pool.last)
            pool.fixture.pool->free(block, {});
        const Block large = pool.fixture.take(size);
        EXPECT_TRUE(pool.fixture.source->has_memory(large)) << size;
        EXPECT_TRUE(pool.fixture.pool->validate());
        pool.fixture.pool->free(large, {});
    }
}

// Pages that commands in flight use are needed elsewhere.
TEST(GrowingPoolThatIsFull, ARequestWaitsForMemoryThatWasMerged) {
    for (uint64_t size = page_of_source; size <= 64 * MiB; size += page_of_source / 2) {
        PoolWithGaps pool;
        FakeQueue queue, other;
        for (size_t i = 0; i < pool.last.size(); ++i) {
            const driver::Timepoint used = other.at(i + 1);
            pool.fixture.pool->free(pool.last[i], {&used, 1});
        }
        const LeaseRequest request{ByteCount{size}, aligned};
        const auto large = pool.fixture.pool->lease(request, {LeaseTerms::Consumer::device, &queue, WhenFull::wait});
        ASSERT_TRUE(large) << size;
        EXPECT_TRUE(pool.fixture.source->has_memory(large->block)) << size;
        EXPECT_TRUE(pool.fixture.pool->validate());
        other.complete(3);
        pool.fixture.pool->free(large->block, {});
    }
}

// Free memory between two gaps: neither end of the place is where the block belongs.
TEST_F(GrowingPool, TheWindowWithTheFewestNewPagesMayBeginAnywhere) {
    const Block low = take(page_of_source);
    const Block left = take(8 * page_of_source);
    const Block middle = take(8 * page_of_source);
    const Block right = take(8 * page_of_source);
    const Block high = take(page_of_source);
    give(left);
    give(right);
    const Block larger = take(16 * page_of_source + page_of_source / 2);  // takes the pages of both
    EXPECT_EQ(fixture.source->decommitted, 16 * page_of_source);
    give(middle);
    const uint64_t before = reserved();
    const Block again = take(10 * page_of_source);
    EXPECT_EQ(reserved(), before + 2 * page_of_source);
    EXPECT_EQ(fixture.source->decommitted, 16 * page_of_source) << "pages of `middle` moved";
    for (const Block& block : {low, high, larger, again})
        give(block);
}

// Parts of pages beside blocks in use stay.
TEST_F(GrowingPool, OnlyWholePagesGoBack) {
    const Block low = take(page_of_source / 2);
    const Block middle = take(9 * page_of_source);
    const Block high = take(page_of_source / 2);
    give(middle);
    const Block larger = take(12 * page_of_source);
    EXPECT_EQ(fixture.source->decommitted, 8 * page_of_source);
    for (const Block& block : {low, high, larger})
        EXPECT_TRUE(fixture.source->has_memory(block));
    for (const Block& block : {low, high, larger})
        give(block);
}

// Memory that commands in flight use stays committed, at its place.
TEST_F(GrowingPool, PagesInFlightStay) {
    FakeQueue queue, other;
    const LeaseTerms terms{LeaseTerms::Consumer::device, &queue, WhenFull::wait};
    const auto first = fixture.pool->lease(LeaseRequest{ByteCount{8 * page_of_source}, aligned}, terms);
    const Block between = take(page_of_source);
    const driver::Timepoint used = other.at(1);
    ASSERT_TRUE(first);
    fixture.pool->free(first->block, {&used, 1});
    const Block larger = take(12 * page_of_source);
    EXPECT_EQ(fixture.source->decommitted, 0u);
    EXPECT_TRUE(fixture.source->has_memory(first->block));
    other.complete(1);
    fixture.pool->drain();
    const Block more = take(16 * page_of_source);
    EXPECT_EQ(fixture.source->decommitted, 8 * page_of_source);
    for (const Block& block : {between, larger, more})
        give(block);
}

// A part of a block in flight was leased again; the rest is free, and not idle before the commands are complete.
TEST_F(GrowingPool, FreePagesInFlightStay) {
    FakeQueue queue;
    const LeaseTerms terms{LeaseTerms::Consumer::device, &queue, WhenFull::wait};
    const auto first = fixture.pool->lease(LeaseRequest{ByteCount{8 * page_of_source}, aligned}, terms);
    ASSERT_TRUE(first);
    const Block between = take(page_of_source);
    const driver::Timepoint used = queue.at(1);
    fixture.pool->free(first->block, {&used, 1});
    const auto part = fixture.pool->lease(LeaseRequest{ByteCount{2 * page_of_source}, aligned}, terms);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->block.address, first->block.address);
    const Block larger = take(12 * page_of_source);
    EXPECT_EQ(fixture.source->decommitted, 0u);
    queue.complete(1);
    const Block more = take(16 * page_of_source);
    EXPECT_EQ(fixture.source->decommitted, 6 * page_of_source);
    for (const Block& block : {part->block, between, larger, more})
        give(block);
}

// Other threads lease and free while pages are committed and given back.
TEST_F(GrowingPool, TheSourceIsAskedWithoutTheLock) {
    const Block first = take(8 * page_of_source);
    const Block small = take(page_of_source / 4);
    give(first);
    int calls = 0;
    fixture.source->on_call = [&](const char* name) {
        if (std::string_view{name} == "available")
            return;
        ++calls;
        static_cast<void>(fixture.pool->statistics());  // takes the lock
    };
    const Block larger = take(12 * page_of_source);
    fixture.source->on_call = {};
    EXPECT_GE(calls, 2);
    give(small);
    give(larger);
}

// Random sizes and lifetimes: memory that is reserved in vain stays below a page for each hole and a 64th.
TEST(GrowingPoolProperty, ReservesLittleMoreThanIsInUse) {
    Fixture fixture{{.capacity = 4096 * MiB, .grows = true}};
    std::mt19937_64 random(1);
    std::vector<Block> blocks;
    for (int step = 0; step < 4000; ++step) {
        if (blocks.size() < 12 || (blocks.size() < 40 && random() % 2 == 0)) {
            blocks.push_back(fixture.take(page_of_source * (1 + random() % 24)));
            ASSERT_TRUE(fixture.source->has_memory(blocks.back()));
        } else {
            const size_t index = random() % blocks.size();
            fixture.pool->free(blocks[index], {});
            blocks[index] = blocks.back();
            blocks.pop_back();
        }
    }
    const auto now = fixture.pool->statistics();
    EXPECT_LE(now.reserved_peak.value, now.live_peak.value / 100 * 103);
    EXPECT_TRUE(fixture.pool->validate());
    for (const Block& block : blocks)
        fixture.pool->free(block, {});
    fixture.pool->trim();
    EXPECT_EQ(fixture.source->reserved, 0u);
}

}  // namespace
}  // namespace polder::memory
