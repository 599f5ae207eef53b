// How many threads LaunchWidth learns to use, on made-up machines.
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <host/launch_width.h>

namespace polder::devices {
namespace {

constexpr float work_ns = 100'000;
constexpr uint64_t groups = 4096;

struct Summary {
    uint32_t threads_last = 0;
    uint32_t trials = 0;
};

// `elapsed_ns`: what a launch takes with so many threads.
Summary launch_often(LaunchWidth& width, uint32_t most, const std::function<float(uint32_t threads)>& elapsed_ns,
                     uint32_t launches = 5000) {
    Summary summary;
    for (uint32_t i = 0; i < launches; ++i) {
        const LaunchWidth::Choice choice = width.choose(most, groups, work_ns);
        EXPECT_GE(choice.threads, 1u);
        EXPECT_LE(choice.threads, most);
        if (choice.is_observed)
            width.observe(choice, elapsed_ns(choice.threads));
        if (choice.trial == LaunchWidth::Choice::Trial::no)
            summary.threads_last = choice.threads;
        else
            ++summary.trials;
    }
    return summary;
}

// Work that is divided without loss.
float divided(uint32_t threads) { return work_ns / static_cast<float>(threads); }

// Each thread more makes all of them slower: eight threads are the fastest.
float shared(uint32_t threads) { return divided(threads) + 1500 * static_cast<float>(threads); }

TEST(LearnedWidth, KeepsAllThreadsWhereTheyAreFaster) {
    LaunchWidth width;
    const Summary summary = launch_often(width, 16, divided);
    EXPECT_EQ(summary.threads_last, 16u);
    // Slower trials become rare: after 16, 32, ... launches.
    EXPECT_LE(summary.trials, 12u);
    EXPECT_GE(summary.trials, 1u);
}

TEST(LearnedWidth, FindsTheFastestNumberOfThreads) {
    LaunchWidth width;
    EXPECT_EQ(launch_often(width, 16, shared).threads_last, 8u);
    LaunchWidth wider;
    EXPECT_EQ(launch_often(wider, 64, shared).threads_last, 8u);
}

// Otherwise the processors of a machine would be busy without use.
TEST(LearnedWidth, TakesFewerThreadsWhereMoreAreNoFaster) {
    LaunchWidth width;
    EXPECT_LE(launch_often(width, 16, [](uint32_t) { return work_ns; }).threads_last, 3u);
}

TEST(LearnedWidth, TakesMoreThreadsAgainWhenTheyBecomeFaster) {
    LaunchWidth width;
    EXPECT_EQ(launch_often(width, 16, shared).threads_last, 8u);
    EXPECT_EQ(launch_often(width, 16, divided, 50'000).threads_last, 16u);
}

// One launch in eight takes ten times as long, because something else runs.
TEST(LearnedWidth, IsNotMisledBySlowLaunches) {
    LaunchWidth width;
    uint32_t launch = 0;
    const auto disturbed = [&launch](uint32_t threads) {
        return divided(threads) * (++launch % 8 == 0 ? 10.0f : 1.0f);
    };
    EXPECT_EQ(launch_often(width, 16, disturbed).threads_last, 16u);
}

TEST(LearnedWidth, BeginsAnewWithAnotherNumberOfGroups) {
    LaunchWidth width;
    EXPECT_EQ(launch_often(width, 16, shared).threads_last, 8u);
    EXPECT_EQ(width.choose(16, groups / 4, work_ns).threads, 16u);
}

TEST(LearnedWidth, LeavesLongLaunchesAndNarrowOnesAlone) {
    LaunchWidth width;
    for (int i = 0; i < 1000; ++i) {
        EXPECT_FALSE(width.choose(16, groups, 17 * LaunchWidth::small_ns).is_observed);
        EXPECT_FALSE(width.choose(3, groups, work_ns).is_observed);
    }
}

}  // namespace
}  // namespace polder::devices
