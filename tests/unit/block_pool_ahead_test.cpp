// Growth ahead of need: who makes memory when, and how much. No time is measured: a test waits until the pool's thread is idle.
#include "../support/signals.h"
#include "support/pool_fixture.h"

#include <thread>

namespace polder::memory {
namespace {

using namespace test;

// A pool whose source is slow; every call that makes memory is counted by whether this thread has made it.
struct PoolAhead : testing::Test {
    explicit PoolAhead(uint64_t capacity = 1024 * MiB, bool grows_ahead = true)
        : fixture({.capacity = capacity, .grows = true, .is_slow = true},
                  {.space = SpaceId{1}, .grows_ahead = grows_ahead}) {
        fixture.source->on_call = [this](const char* function) {
            if (std::string_view(function) != "commit")
                return;
            ++(std::this_thread::get_id() == self ? commits_here : commits_elsewhere);
            if (std::this_thread::get_id() != self && !polder::test::blocks_signals())
                ++commits_with_signals;
        };
    }
    void TearDown() override {
        fixture.pool->wait_for_growth_ahead();
        for (const Block& block : blocks)
            fixture.pool->free(block, {});
        fixture.pool->trim();
        EXPECT_EQ(fixture.source->reserved, 0u);
        EXPECT_TRUE(fixture.pool->validate());
    }
    void take(uint64_t size) {
        blocks.push_back(fixture.take(size));
        fixture.pool->wait_for_growth_ahead();
        EXPECT_TRUE(fixture.pool->validate());
        EXPECT_TRUE(fixture.source->has_memory(blocks.back()));
    }

    const std::thread::id self = std::this_thread::get_id();
    std::atomic<int> commits_here{0};
    std::atomic<int> commits_elsewhere{0};
    std::atomic<int> commits_with_signals{0};  // elsewhere, where handlers of the application may run
    Fixture fixture;
    std::vector<Block> blocks;
};

struct PoolAheadOfNothing : PoolAhead {
    PoolAheadOfNothing() : PoolAhead(1024 * MiB, false) {}
};
struct SmallPoolAhead : PoolAhead {
    SmallPoolAhead() : PoolAhead(16 * MiB) {}
};

TEST_F(PoolAhead, OnlyTheFirstStepIsMadeByTheThreadThatAsks) {
    for (int i = 0; i < 100; ++i)
        take(MiB);
    EXPECT_EQ(commits_here, 1);
    EXPECT_GE(commits_elsewhere, 5);
    EXPECT_EQ(commits_with_signals, 0);
    // A quarter more than what is in use, and what a step is rounded up by.
    EXPECT_LE(fixture.source->reserved, 100 * MiB * 5 / 4 + 2 * page_of_source);
}

TEST_F(PoolAhead, AStepHasABound) {
    take(800 * MiB);
    take(MiB);
    EXPECT_LE(fixture.source->reserved, 1024 * MiB - (1024 - 801) * MiB * 3 / 4 + 16 * page_of_source);
}

// What is free again is used before anything is made.
TEST_F(PoolAhead, FreeMemoryIsEnough) {
    for (int i = 0; i < 32; ++i)
        take(MiB);
    const uint64_t reserved = fixture.source->reserved;
    for (int round = 0; round < 10; ++round) {
        for (int i = 0; i < 16; ++i) {
            fixture.pool->free(blocks.back(), {});
            blocks.pop_back();
        }
        for (int i = 0; i < 16; ++i)
            take(MiB);
    }
    EXPECT_LE(fixture.source->reserved, reserved);
}

TEST_F(PoolAheadOfNothing, WithoutTheWishEachThreadAsksForItself) {
    for (int i = 0; i < 20; ++i)
        take(MiB);
    EXPECT_EQ(commits_elsewhere, 0);
    EXPECT_EQ(commits_here, 10);
}

// The last quarters are left to others, and to requests.
TEST_F(SmallPoolAhead, ADeviceThatIsNearlyFullIsFilledByRequestsAlone) {
    for (int i = 0; i < 16; ++i)
        take(MiB);
    EXPECT_EQ(fixture.source->reserved, 16 * MiB);
    EXPECT_GE(commits_here, 2);
    EXPECT_NE(fixture.refusal(MiB, WhenFull::fail), "");
}

TEST_F(PoolAhead, TheLimitHoldsForWhatIsMadeAhead) {
    fixture.pool->set_limit(ByteCount{4 * MiB});
    for (int i = 0; i < 4; ++i)
        take(MiB);
    EXPECT_LE(fixture.source->reserved, 4 * MiB);
}

// What the source refuses is made by the request that needs it, or not at all.
TEST_F(PoolAhead, AStepThatFailsIsNoFailureOfARequest) {
    take(MiB);
    const auto count = fixture.source->on_call;
    fixture.source->on_call = [count, this](const char* function) {
        count(function);
        if (std::string_view(function) == "commit" && std::this_thread::get_id() != self)
            throw std::bad_alloc();
    };
    for (int i = 0; i < 20; ++i)
        take(MiB);
    EXPECT_GE(commits_here, 5);
    EXPECT_GE(commits_elsewhere, 1);
}

// Requests that find room do not wait while a step is being made.
TEST_F(PoolAhead, RequestsThatFindRoomGoOnMeanwhile) {
    take(MiB);
    std::atomic<bool> has_begun{false};
    std::atomic<bool> may_end{false};
    fixture.source->on_call = [&, this](const char* function) {
        if (std::string_view(function) != "commit" || std::this_thread::get_id() == self)
            return;
        has_begun = true;
        has_begun.notify_all();
        may_end.wait(false);
    };
    blocks.push_back(fixture.take(MiB / 2));  // less than half of a step is left
    has_begun.wait(false);
    blocks.push_back(fixture.take(MiB / 4));
    may_end = true;
    may_end.notify_all();
    fixture.pool->wait_for_growth_ahead();
    EXPECT_EQ(fixture.source->reserved, 2 * page_of_source);
}

// A trim neither meets a step nor leaves one behind.
TEST_F(PoolAhead, ATrimGivesBackWhatWasMadeAhead) {
    for (int round = 0; round < 50; ++round) {
        for (int i = 0; i < 8; ++i)
            blocks.push_back(fixture.take(MiB));
        for (const Block& block : blocks)
            fixture.pool->free(block, {});
        blocks.clear();
        fixture.pool->trim();
        ASSERT_EQ(fixture.source->reserved, 0u) << round;
    }
}

}  // namespace
}  // namespace polder::memory
