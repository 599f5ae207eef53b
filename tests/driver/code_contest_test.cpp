// Which form of a kernel's code CodeContest keeps, with made-up times.
#include <functional>
#include <gtest/gtest.h>
#include <host/code_contest.h>
#include <host/host_kernel.h>
#include <map>
#include <optional>
#include <random>
#include <vector>

namespace polder::devices {
namespace {

using First = CodeContest::First;
constexpr uint64_t ms = 1'000'000;
constexpr uint64_t us = 1'000;
constexpr uint64_t stack = 4096;

// Functions with other addresses, which are never called.
template <int number>
void function_of_form(const std::byte*, const LaunchContext*, const uint64_t*, std::byte*, std::byte*) {}

driver::HostCode code_of(WorkGroupFunction function) {
    return {.function = function, .stack_bytes = stack, .name = "kernel"};
}

class Forms final : public driver::OtherForms {
public:
    explicit Forms(std::vector<const driver::HostCode*> codes, uint64_t making_ns)
        : ns_to_make(making_ns), codes_(std::move(codes)) {}

    [[nodiscard]] size_t count() const override { return codes_.size(); }
    [[nodiscard]] const char* name(size_t) const override { return "a form"; }
    [[nodiscard]] uint64_t making_ns() const override { return ns_to_make; }
    void request(size_t form) noexcept override { ++requests[form]; }
    [[nodiscard]] std::optional<const driver::HostCode*> made(size_t form) const override {
        return is_ready ? std::optional{codes_[form]} : std::nullopt;
    }
    void measured(size_t form, float time) override { times[form] = time; }
    void settled(size_t form) override { best = form; }

    const uint64_t ns_to_make;
    bool is_ready = true;
    std::map<size_t, int> requests;
    std::map<size_t, float> times;
    std::optional<size_t> best;

private:
    std::vector<const driver::HostCode*> codes_;
};

class CodeContests : public testing::Test {
public:
    Forms& offer(std::vector<const driver::HostCode*> codes, uint64_t making_ns = 1 * ms) {
        auto forms = std::make_unique<Forms>(std::move(codes), making_ns);
        Forms& offered = *forms;
        contest.offer(std::move(forms));
        return offered;
    }

    // Works until the first form is measured.
    void begin() {
        contest.worked(20 * ms);
        contest.worked(1 * ms);
    }

    using Times = std::function<uint64_t(const driver::HostCode&)>;

    // Pairs of pieces until the trial ends, and then whole launches until it is confirmed. Returns how many pairs of pieces there were.
    int run_trial(const Times& ns) { return run_trial(ns, ns); }
    int run_trial(const Times& ns_of_piece, const Times& ns_of_launch) {
        return run(contest, ns_of_piece, ns_of_launch);
    }
    static int run(CodeContest& contest, const Times& ns_of_piece, const Times& ns_of_launch) {
        const CodeContest::Turn turn = contest.turn(contest.stack_bytes());
        EXPECT_NE(turn.rival, nullptr);
        const auto is_open = [&] { return contest.turn(contest.stack_bytes()).rival == turn.rival; };
        int pairs = 0;
        for (; turn.rival != nullptr && is_open() && !contest.wants_whole() && pairs < 1000; ++pairs)
            add_piece(contest, turn, ns_of_piece);
        for (int i = 0; turn.rival != nullptr && is_open() && i < 1000; ++i)
            add_launch(contest, turn, 64, ns_of_launch);
        EXPECT_FALSE(turn.rival != nullptr && is_open());
        return pairs;
    }
    static void add_piece(CodeContest& contest, const CodeContest::Turn& turn, const Times& ns) {
        const First first = contest.first();
        const bool is_code_first = first == First::current;
        const uint64_t before = ns(is_code_first ? *turn.code : *turn.rival);
        const uint64_t after = ns(is_code_first ? *turn.rival : *turn.code);
        contest.add(turn, first, is_code_first ? before : after, is_code_first ? after : before);
    }
    static void add_launch(CodeContest& contest, const CodeContest::Turn& turn, uint64_t groups, const Times& ns) {
        const driver::HostCode& code = contest.whole(turn, groups);
        contest.add_whole(turn, code, groups, ns(code));
    }

    const driver::HostCode& best() { return *contest.turn(contest.stack_bytes()).code; }

    const driver::HostCode planned = code_of(function_of_form<0>), other = code_of(function_of_form<1>),
                           third = code_of(function_of_form<2>);
    CodeContest contest{planned};
};

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
    EXPECT_LE(wins_with_noise(1.0), 4);
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

// Launches of one size whose data is different.
TEST_F(CodeContests, LaunchesThatAlternateBetweenDataAreCompared) {
    for (const uint64_t period : {2u, 3u, 4u, 5u}) {
        CodeContest alternating{planned};
        alternating.offer(std::make_unique<Forms>(std::vector{&other}, 1 * ms));
        alternating.worked(20 * ms);
        alternating.worked(1 * ms);
        const CodeContest::Turn turn = alternating.turn(stack);
        constexpr uint64_t of_data[] = {10, 20, 20, 10, 15};
        uint64_t i = 0;
        for (; i < 2000 && alternating.turn(stack).rival != nullptr; ++i) {
            const driver::HostCode& code = alternating.whole(turn, 4);
            alternating.add_whole(turn, code, 4, of_data[i % period] * (&code == &planned ? 10 : 6) * us);
        }
        EXPECT_EQ(alternating.turn(stack).code, &other) << period;
    }
}

TEST_F(CodeContests, LaunchesThatAlternateBetweenSizesAreCompared) {
    static_cast<void>(offer({&other}));
    begin();
    const CodeContest::Turn turn = contest.turn(stack);
    uint64_t i = 0;
    for (; i < 1000 && contest.turn(stack).rival != nullptr; ++i) {
        const uint64_t groups = 1 + i % 3;
        add_launch(contest, turn, groups,
                   [&](const driver::HostCode& code) { return groups * (&code == &planned ? 100 : 80) * us; });
    }
    EXPECT_EQ(&best(), &other);
    EXPECT_LT(i, 200);
}

TEST_F(CodeContests, AFormThatIsFasterInPiecesAndSlowerInLaunchesIsNotTaken) {
    static_cast<void>(offer({&other}));
    begin();
    run_trial([&](const driver::HostCode& code) { return (&code == &planned ? 20 : 18) * us; },
              [&](const driver::HostCode& code) { return (&code == &planned ? 300 : 310) * us; });
    EXPECT_EQ(&best(), &planned);
}

// A launch that takes a second cannot be repeated often.
TEST_F(CodeContests, PiecesDecideWhereLaunchesAreLong) {
    static_cast<void>(offer({&other}));
    begin();
    const CodeContest::Turn turn = contest.turn(stack);
    for (int i = 0; i < 1000 && !contest.wants_whole(); ++i)
        add_piece(contest, turn, [&](const driver::HostCode& code) { return (&code == &planned ? 20 : 15) * us; });
    EXPECT_TRUE(contest.wants_whole());
    contest.worked(2000 * ms);
    EXPECT_FALSE(contest.wants_whole());
    EXPECT_EQ(&best(), &other);
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

TEST_F(CodeContests, WholeLaunchesAreCompared) {
    static_cast<void>(offer({&other}));
    begin();
    const CodeContest::Turn turn = contest.turn(stack);
    std::map<const driver::HostCode*, int> executed;
    for (int i = 0; i < 1000 && contest.turn(stack).rival != nullptr; ++i) {
        const driver::HostCode& code = contest.whole(turn, 4);
        ++executed[&code];
        contest.add_whole(turn, code, 4, (&code == &planned ? 100 : 50) * us);
    }
    EXPECT_EQ(&best(), &other);
    EXPECT_EQ(executed[&planned], executed[&other]);
}

// Launches of other sizes take other times in any form.
TEST_F(CodeContests, WholeLaunchesOfOtherSizesAreNotCompared) {
    const Forms& forms = offer({&other});
    begin();
    const CodeContest::Turn turn = contest.turn(stack);
    for (uint64_t groups = 1; groups <= 200; ++groups)
        contest.add_whole(turn, contest.whole(turn, groups), groups, groups * us);
    EXPECT_EQ(contest.turn(stack).rival, &other);
    EXPECT_TRUE(forms.times.empty());
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
}

}  // namespace
}  // namespace polder::devices
