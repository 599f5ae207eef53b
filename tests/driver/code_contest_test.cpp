// Which form of a kernel's code CodeContest keeps, with made-up times of pieces of launches.
#include "code_contests.h"

#include <future>
#include <host/host_kernel.h>
#include <random>
#include <thread>

namespace polder::devices {
namespace {

TEST_F(CodeContests, NothingIsRequestedBeforeTheKernelHasWorkedForLong) {
    const Forms& forms = offer({&other});
    contest.worked(19 * ms);
    EXPECT_TRUE(forms.requests.empty());
    EXPECT_EQ(contest.turn(stack).rival, nullptr);
    contest.worked(1 * ms);
    EXPECT_EQ(forms.requests.at(0), 1);
}

TEST_F(CodeContests, AKernelWithLongCodeWorksForLongerBefore) {
    const Forms& forms = offer({&other}, 500 * ms);
    contest.worked(499 * ms);
    EXPECT_TRUE(forms.requests.empty());
    contest.worked(1 * ms);
    EXPECT_EQ(forms.requests.at(0), 1);
}

TEST_F(CodeContests, WhatAnEarlierProcessHasFoundIsCheckedEarly) {
    const Forms& forms = offer({&other}, 0);
    contest.worked(3 * ms);
    EXPECT_TRUE(forms.requests.empty());
    contest.worked(1 * ms);
    EXPECT_EQ(forms.requests.at(0), 1);
}

// Reading the clock takes as long as a short launch.
TEST_F(CodeContests, EachLongLaunchIsTimed_AndFewShortOnes) {
    HostKernel kernel(planned);
    EXPECT_FALSE(kernel.times_this());  // there are no other forms
    kernel.offer(std::make_unique<Forms>(std::vector<const driver::HostCode*>{&other}, 1 * ms));
    const auto timed_of_100 = [&](uint64_t ns) {
        int timed = 0;
        for (int i = 0; i < 100; ++i)
            if (kernel.times_this()) {
                ++timed;
                kernel.took(ns);
            }
        return timed;
    };
    EXPECT_LE(timed_of_100(1 * us), 8);
    EXPECT_GE(timed_of_100(100 * us), 80);
    EXPECT_LE(timed_of_100(1 * us), 8);
}

TEST_F(CodeContests, AFasterFormStays) {
    const Forms& forms = offer({&other});
    begin();
    run_trial([&](const driver::HostCode& code) { return (&code == &planned ? 100 : 50) * us; });
    EXPECT_EQ(&best(), &other);
    EXPECT_NEAR(forms.times.at(0), 0.5, 0.001);
    EXPECT_EQ(contest.turn(stack).rival, nullptr);
}

TEST_F(CodeContests, AMuchSlowerFormIsGivenUpSoon) {
    static_cast<void>(offer({&other}));
    begin();
    EXPECT_LE(run_trial([&](const driver::HostCode& code) { return (&code == &planned ? 10 : 500) * us; }), 12);
    EXPECT_EQ(&best(), &planned);
}

TEST_F(CodeContests, OfTwoFormsWithLongWorkGroupsTheMuchSlowerOneIsExecutedTwice) {
    static_cast<void>(offer({&other}));
    begin();
    const int warming = 2;
    EXPECT_EQ(run_trial([&](const driver::HostCode& code) { return (&code == &planned ? 10 : 50) * ms; }), warming + 2);
    EXPECT_EQ(&best(), &planned);
}

TEST_F(CodeContests, AFormThatIsHardlyFasterIsNotTaken) {
    static_cast<void>(offer({&other}));
    begin();
    run_trial([&](const driver::HostCode& code) { return (&code == &planned ? 1000 : 990) * us; });
    EXPECT_EQ(&best(), &planned);
}

TEST_F(CodeContests, InterruptionsAndTheOrderOfAPairDoNotDecide) {
    const Forms& forms = offer({&other});
    begin();
    int measured = 0;
    // What runs second finds warm caches; every fifth time is ten times as long. The other form takes 1.1 of the time.
    const CodeContest::Turn turn = contest.turn(stack);
    while (contest.turn(stack).rival != nullptr && measured < 1000) {
        const First first = contest.first();
        const uint64_t slow = ++measured % 5 == 0 ? 10 : 1;
        const uint64_t code_ns = (first == First::current ? 200 : 100) * us;
        const uint64_t rival_ns = (first == First::current ? 110 : 220) * us * slow;
        contest.add(turn, first, code_ns, rival_ns);
    }
    EXPECT_EQ(&best(), &planned);
    EXPECT_NEAR(forms.times.at(0), 1.1, 0.01);
}

TEST_F(CodeContests, FormsComeOneAfterTheOther) {
    const Forms& forms = offer({&other, &third});
    begin();
    const auto ns = [&](const driver::HostCode& code) {
        return (&code == &planned ? 100 : &code == &other ? 80 : 60) * us;
    };
    run_trial(ns);
    EXPECT_EQ(&best(), &other);
    EXPECT_EQ(forms.best, 0);  // the process may end now
    EXPECT_EQ(forms.reports, 1);
    EXPECT_TRUE(forms.requests.contains(1));
    contest.worked(1 * ms);
    run_trial(ns);
    EXPECT_EQ(&best(), &third);
    EXPECT_NEAR(forms.times.at(1), 0.75, 0.001);
    EXPECT_EQ(forms.best, 1);
}

// Times vary by a quarter, as on a machine with other programs.
CodeContests::Times times_with_noise(uint64_t seed, const driver::HostCode& planned, double time_of_other) {
    return [&planned, time_of_other, random = std::mt19937_64(seed),
            noise = std::lognormal_distribution<double>(0, 0.25)](const driver::HostCode& code) mutable {
        return static_cast<uint64_t>((&code == &planned ? 1 : time_of_other) * noise(random) * 20 * us);
    };
}

// How many of 200 contests the other form wins.
int wins_with_noise(double time_of_other) {
    int wins = 0;
    for (uint64_t seed = 0; seed < 200; ++seed) {
        const driver::HostCode planned = code_of(function_of_form<0>), other = code_of(function_of_form<1>);
        CodeContest contest{planned};
        contest.offer(std::make_unique<Forms>(std::vector{&other}, 1 * ms));
        contest.worked(20 * ms);
        contest.worked(1 * ms);
        const CodeContests::Times times = times_with_noise(seed, planned, time_of_other);
        CodeContests::run(contest, times, times);
        wins += contest.turn(stack).code == &other ? 1 : 0;
    }
    return wins;
}

TEST(CodeContestsWithNoise, AFormThatIsNoFasterIsHardlyEverTaken) {
    EXPECT_LE(wins_with_noise(1.0), 12);
    EXPECT_EQ(wins_with_noise(1.05), 0);
}

TEST(CodeContestsWithNoise, AFormThatIsMuchFasterIsNearlyAlwaysTaken) {
    EXPECT_GE(wins_with_noise(0.8), 190);
    EXPECT_GE(wins_with_noise(0.6), 199);
}

// Of the pairs of a launch, every other one takes other work first. The order of the codes must not follow that.
TEST_F(CodeContests, WorkThatAlternatesWithThePairsDoesNotDecide) {
    static_cast<void>(offer({&other}));
    begin();
    int piece = 0;
    constexpr uint64_t of_pieces[] = {20, 40, 40, 20};
    run_trial([&](const driver::HostCode&) { return of_pieces[piece++ % 4] * us; });
    EXPECT_EQ(&best(), &planned);
}

TEST_F(CodeContests, AFormThatCannotBeMadeIsPassedOver) {
    Forms& forms = offer({nullptr, &other});
    forms.is_ready = false;
    begin();
    contest.worked(1 * ms);
    EXPECT_EQ(contest.turn(stack).rival, nullptr);
    forms.is_ready = true;
    contest.worked(1 * ms);  // the first one cannot be made
    EXPECT_EQ(forms.requests.at(1), 1);
    contest.worked(1 * ms);
    EXPECT_EQ(contest.turn(stack).rival, &other);
}

TEST_F(CodeContests, FormsWithOtherLocalMemoryAreNotMeasured) {
    driver::HostCode larger = other;
    larger.local_bytes = 128;
    static_cast<void>(offer({&larger}));
    begin();
    contest.worked(1 * ms);
    EXPECT_EQ(contest.turn(stack).rival, nullptr);
}

// A launch may be executed by a thread of the application whose stack was looked at when the launch was submitted.
TEST_F(CodeContests, LaunchesThatWereSubmittedWithLittleStackExecuteThePlannedCode) {
    driver::HostCode larger = other;
    larger.stack_bytes = 10 * stack;
    static_cast<void>(offer({&larger}));
    begin();
    EXPECT_EQ(contest.stack_bytes(), 10 * stack);
    EXPECT_EQ(contest.turn(stack).rival, nullptr);
    EXPECT_EQ(contest.turn(10 * stack).rival, &larger);
    run_trial([&](const driver::HostCode& code) { return (&code == &planned ? 100 : 50) * us; });
    EXPECT_EQ(&best(), &larger);
    EXPECT_EQ(contest.turn(stack).code, &planned);
}

// A report may write a file, while other threads execute launches.
TEST_F(CodeContests, WhatWasFoundIsReportedWithoutTheLock) {
    Forms& forms = offer({&other});
    begin();
    bool was_free = false;
    forms.on_report = [&] {
        auto asked = std::make_shared<std::promise<void>>();
        std::future<void> answered = asked->get_future();
        std::thread([&, asked] {
            static_cast<void>(contest.first());
            asked->set_value();
        }).detach();
        was_free = answered.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    };
    run_trial([&](const driver::HostCode& code) { return (&code == &planned ? 100 : 50) * us; });
    EXPECT_TRUE(was_free);
}

TEST_F(CodeContests, FormsAreMeasuredAgainWhenTheKernelHasWorkedMuchLonger) {
    const Forms& forms = offer({&other});
    begin();
    run_trial([&](const driver::HostCode& code) { return (&code == &planned ? 100 : 50) * us; });
    EXPECT_EQ(&best(), &other);
    contest.worked(100 * ms);
    EXPECT_EQ(forms.requests.at(0), 1);
    contest.worked(1000 * ms);
    EXPECT_EQ(forms.requests.at(0), 2);
    contest.worked(1 * ms);
    // Later launches may be others.
    EXPECT_EQ(contest.turn(stack).rival, &planned);
    run_trial([&](const driver::HostCode& code) { return (&code == &planned ? 50 : 100) * us; });
    EXPECT_EQ(&best(), &planned);
    EXPECT_EQ(forms.best, forms.count());  // later processes begin with it
}

// A program may have worked for minutes when its data become others.
TEST_F(CodeContests, FormsAreMeasuredAgainAfterSomeSeconds) {
    static_cast<void>(offer({&other}));
    begin();
    run_trial([&](const driver::HostCode& code) { return (&code == &planned ? 50 : 100) * us; });
    for (int second = 0; second < 100; ++second) {
        contest.worked(1000 * ms);
        if (contest.turn(stack).rival != nullptr)
            run_trial([&](const driver::HostCode& code) { return (&code == &planned ? 50 : 100) * us; });
    }
    EXPECT_EQ(&best(), &planned);
    for (int i = 0; i < 3 && contest.turn(stack).rival == nullptr; ++i)
        contest.worked(1000 * ms);
    run_trial([&](const driver::HostCode& code) { return (&code == &planned ? 100 : 50) * us; });
    EXPECT_EQ(&best(), &other);
}

}  // namespace
}  // namespace polder::devices
