// Turns are divided equally among flows. A thread with the turn leaves only when all other threads wait for it, so the order is exact.
#include "space/fair_turns.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace polder::memory {
namespace {

class FairTurnsTest : public testing::Test {
protected:
    // Threads of one flow, each of which asks again and again.
    struct Load {
        uint32_t threads;
        uint64_t cost;
    };
    // How many of the first `turns` turns each flow gets.
    std::vector<uint32_t> turns_of(const std::vector<Load>& loads, uint32_t turns) {
        std::vector<FairTurns::Flow> flows(loads.size());
        std::vector<uint32_t> taken(loads.size());
        uint32_t total = 0;
        uint32_t all_threads = 0;
        for (const Load& load : loads)
            all_threads += load.threads;
        FairTurns fair;
        std::atomic<bool> is_over{false};
        std::vector<std::thread> threads;
        FairTurns::Flow first;
        fair.enter(first, 1);
        for (size_t flow = 0; flow < loads.size(); ++flow)
            for (uint32_t i = 0; i < loads[flow].threads; ++i)
                threads.emplace_back([&, flow] {
                    while (!is_over) {
                        fair.enter(flows[flow], loads[flow].cost);
                        if (total < turns) {
                            ++taken[flow];
                            ++total;
                        }
                        if (total == turns)
                            is_over = true;
                        while (!is_over && fair.requests() < all_threads)
                            std::this_thread::yield();
                        fair.leave();
                    }
                });
        while (fair.requests() < all_threads + 1)
            std::this_thread::yield();
        fair.leave();
        for (std::thread& thread : threads)
            thread.join();
        return taken;
    }
};

TEST_F(FairTurnsTest, AFlowOfManyThreadsGetsNoMoreThanOneOfFew) {
    const std::vector<uint32_t> taken = turns_of({{8, 100}, {2, 100}}, 200);
    EXPECT_NEAR(taken[0], 100, 2);
    EXPECT_NEAR(taken[1], 100, 2);
}

TEST_F(FairTurnsTest, LargeRequestsGetFewerTurns) {
    const std::vector<uint32_t> taken = turns_of({{2, 700}, {2, 100}}, 160);
    EXPECT_NEAR(taken[0], 20, 2);
    EXPECT_NEAR(taken[1], 140, 2);
}

TEST_F(FairTurnsTest, ThreeFlowsAlternate) {
    const std::vector<uint32_t> taken = turns_of({{5, 100}, {2, 100}, {3, 100}}, 150);
    for (const uint32_t each : taken)
        EXPECT_NEAR(each, 50, 3);
}

// A flow that did not ask for a while gets the next turn, but only one.
TEST_F(FairTurnsTest, NothingIsSavedUp) {
    FairTurns fair;
    FairTurns::Flow busy;
    FairTurns::Flow idle;
    for (int i = 0; i < 100; ++i) {
        fair.enter(busy, 100);
        fair.leave();
    }
    fair.enter(busy, 100);
    std::vector<int> order;
    std::vector<std::thread> threads;
    const auto ask = [&](FairTurns::Flow& flow, int name) {
        const uint32_t before = fair.requests();
        threads.emplace_back([&fair, &order, &flow, name] {
            fair.enter(flow, 100);
            order.push_back(name);
            fair.leave();
        });
        while (fair.requests() == before)
            std::this_thread::yield();
    };
    for (int i = 0; i < 3; ++i)
        ask(busy, 0);
    for (int i = 0; i < 3; ++i)
        ask(idle, 1);
    fair.leave();
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(order, (std::vector<int>{1, 0, 1, 0, 1, 0}));
}

TEST_F(FairTurnsTest, AFlowAsksAsLongAsOthersHadFewTurnsSince) {
    FairTurns fair;
    FairTurns::Flow busy;
    FairTurns::Flow idle;
    FairTurns::Flow never;
    for (FairTurns::Flow* flow : {&idle, &busy, &busy, &busy, &busy}) {
        fair.enter(*flow, 100);
        fair.leave();
    }
    // The last turn began at 300, and the one of `idle` ended at 100.
    EXPECT_TRUE(fair.asked_within(busy, 0));
    EXPECT_TRUE(fair.asked_within(idle, 200));
    EXPECT_FALSE(fair.asked_within(idle, 199));
    EXPECT_FALSE(fair.asked_within(never, 1000));
}

TEST_F(FairTurnsTest, OnlyRequestsThatFoundNoRoomMakeLaterOnesWait) {
    FairTurns fair;
    FairTurns::Flow flow;
    FairTurns::Flow quiet;
    fair.enter(flow, 100);
    std::atomic<int> step{0};
    std::thread untried([&] {
        fair.enter(quiet, 100, Tried::no);
        step = 1;
        while (step != 2)
            std::this_thread::yield();
        fair.insist(quiet);
        step = 3;
        while (step != 4)
            std::this_thread::yield();
        fair.leave();
    });
    fair.leave();
    while (step != 1)
        std::this_thread::yield();
    EXPECT_FALSE(fair.requested());
    EXPECT_FALSE(fair.asked_within(quiet, 1000)) << "it has not asked for what is missing";
    EXPECT_FALSE(fair.try_enter()) << "it has the turn nevertheless";
    step = 2;
    while (step != 3)
        std::this_thread::yield();
    EXPECT_TRUE(fair.requested());
    EXPECT_TRUE(fair.asked_within(quiet, 1000));
    step = 4;
    untried.join();
    EXPECT_FALSE(fair.requested());
    fair.enter(quiet, 100, Tried::no);
    fair.leave_quietly();
    EXPECT_TRUE(fair.try_enter());
    fair.leave();
}

TEST_F(FairTurnsTest, ARequestThatMustNotWaitIsRefused) {
    FairTurns fair;
    FairTurns::Flow flow;
    ASSERT_TRUE(fair.try_enter());
    EXPECT_TRUE(fair.requested());
    EXPECT_FALSE(fair.try_enter());
    fair.leave();
    EXPECT_FALSE(fair.requested());
    fair.enter(flow, 1);
    EXPECT_FALSE(fair.try_enter());
    fair.leave();
    EXPECT_TRUE(fair.try_enter());
    fair.leave();
}

}  // namespace
}  // namespace polder::memory
