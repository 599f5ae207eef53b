// Which form of a kernel's code CodeContest keeps, with made-up times.
#include <functional>
#include <gtest/gtest.h>
#include <host/code_contest.h>
#include <map>
#include <optional>
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
protected:
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

    // Pairs of times until the trial ends. Returns how many there were.
    int run_trial(const std::function<uint64_t(const driver::HostCode&)>& ns) {
        const CodeContest::Turn turn = contest.turn(contest.stack_bytes());
        EXPECT_NE(turn.rival, nullptr);
        int pairs = 0;
        while (turn.rival != nullptr && contest.turn(contest.stack_bytes()).rival == turn.rival && pairs < 1000) {
            contest.add(turn, contest.first(), ns(*turn.code), ns(*turn.rival));
            ++pairs;
        }
        return pairs;
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
    EXPECT_TRUE(forms.requests.contains(1));
    contest.worked(1 * ms);
    run_trial(ns);
    EXPECT_EQ(&best(), &third);
    EXPECT_NEAR(forms.times.at(1), 0.75, 0.001);
    EXPECT_EQ(forms.best, 1);
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
