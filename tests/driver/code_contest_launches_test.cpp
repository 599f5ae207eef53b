// Which form of a kernel's code CodeContest keeps, with made-up times of whole launches; and launches of a queue.
#include "code_contests.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <host/host_kernel.h>
#include <host/host_queue.h>
#include <thread>

namespace polder::devices {
namespace {

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
    for (uint64_t i = 0; i < 200; ++i) {
        const uint64_t groups = uint64_t{1} << i % 40;
        contest.add_whole(turn, contest.whole(turn, groups), groups, groups);
    }
    EXPECT_EQ(contest.turn(stack).rival, &other);
    EXPECT_TRUE(forms.times.empty());
}

// Each size comes once, as in an elimination.
TEST_F(CodeContests, LaunchesThatBecomeSmallerAreCompared) {
    static_cast<void>(offer({&other}));
    begin();
    const CodeContest::Turn turn = contest.turn(stack);
    for (uint64_t groups = 1000; groups > 500 && contest.turn(stack).rival != nullptr; --groups)
        add_launch(contest, turn, groups,
                   [&](const driver::HostCode& code) { return groups * (&code == &planned ? 100 : 80); });
    EXPECT_EQ(&best(), &other);
}

TEST_F(CodeContests, LaunchesWithoutAPartnerDoNotAllExecuteTheSlowerForm) {
    static_cast<void>(offer({&other}));
    begin();
    const CodeContest::Turn turn = contest.turn(stack);
    std::map<const driver::HostCode*, int> executed;
    for (uint64_t i = 0; i < 400; ++i) {
        const uint64_t groups = uint64_t{1} << i % 40;
        const driver::HostCode& code = contest.whole(turn, groups);
        ++executed[&code];
        contest.add_whole(turn, code, groups, us);
    }
    EXPECT_GT(executed[&planned], 100);
    EXPECT_GT(executed[&other], 100);
}

// Of two kinds of launches one takes nearly all of the time.
TEST_F(CodeContests, AFormThatIsSlowerWhereMostOfTheTimeIsSpentIsNotTaken) {
    static_cast<void>(offer({&other}));
    begin();
    const CodeContest::Turn turn = contest.turn(stack);
    for (int i = 0; i < 2000 && contest.turn(stack).rival != nullptr; ++i)
        if (i % 2 == 0)
            add_launch(contest, turn, 1,
                       [&](const driver::HostCode& code) { return (&code == &planned ? 10 : 5) * us; });
        else
            add_launch(contest, turn, 4,
                       [&](const driver::HostCode& code) { return (&code == &planned ? 1000 : 1300) * us; });
    EXPECT_EQ(&best(), &planned);
}

TEST_F(CodeContests, AFormThatIsFasterWhereMostOfTheTimeIsSpentIsTaken) {
    static_cast<void>(offer({&other}));
    begin();
    const CodeContest::Turn turn = contest.turn(stack);
    for (int i = 0; i < 2000 && contest.turn(stack).rival != nullptr; ++i)
        if (i % 2 == 0)
            add_launch(contest, turn, 1,
                       [&](const driver::HostCode& code) { return (&code == &planned ? 5 : 10) * us; });
        else
            add_launch(contest, turn, 4,
                       [&](const driver::HostCode& code) { return (&code == &planned ? 1000 : 700) * us; });
    EXPECT_EQ(&best(), &other);
}

// Groups of 200 ms: a second of work has five.
TEST_F(CodeContests, LongWorkGroupsAreComparedInFewPairs) {
    static_cast<void>(offer({&other}));
    begin();
    const CodeContest::Turn turn = contest.turn(stack);
    for (int i = 0; i < 200 && contest.turn(stack).rival != nullptr; ++i) {
        const driver::HostCode& code = contest.whole(turn, 4);
        const uint64_t ns = (&code == &planned ? 200 : 140) * ms;
        contest.add_whole(turn, code, 4, ns);
        contest.worked(ns);
    }
    EXPECT_EQ(&best(), &other);
}

// Launches that were submitted before a form was made that needs more stack.
TEST(FormsInQueues, AreMeasuredByLaunchesThatWaitedLongInAQueue) {
    const auto work = [](const std::byte*, const LaunchContext*, const uint64_t*, std::byte*, std::byte*) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(30);
        while (std::chrono::steady_clock::now() < end) {
        }
    };
    static constexpr auto quicker = [](const std::byte*, const LaunchContext*, const uint64_t*, std::byte*,
                                       std::byte*) {};
    driver::HostCode larger = code_of(quicker);
    larger.stack_bytes = uint64_t{40} << 10;
    WorkerPool pool({.thread_name = "test", .places = {{0, 0}}});
    HostKernel kernel(code_of(work));
    auto offered = std::make_unique<Forms>(std::vector<const driver::HostCode*>{&larger}, 1 * ms);
    const Forms& forms = *offered;
    kernel.offer(std::move(offered));
    {
        HostQueue queue(pool, {});
        driver::LaunchOperation operation;
        operation.kernel = &kernel;
        operation.global_size[0] = 64;
        driver::Timepoint last;
        for (int i = 0; i < 200; ++i)
            last = queue.launch(operation, {});
        queue.wait(last.value);
    }
    EXPECT_TRUE(forms.times.contains(0));
}

// Which form has executed each group of a launch.
enum class Executed : uint8_t { none, planned, other };
constexpr size_t groups_of_launch = 4096;
std::array<Executed, groups_of_launch> executed_in;

void spin(int iterations) {
    static std::atomic<int> last{0};
    for (int i = 0; i < iterations; ++i)
        last.store(i, std::memory_order_relaxed);
}

// About a microsecond.
template <Executed form>
void work_for_long(const std::byte*, const LaunchContext*, const uint64_t* group, std::byte*, std::byte*) {
    executed_in[group[0]] = form;
    spin(form == Executed::planned ? 1000 : 800);
}

// Launches a kernel, which has another form, until the forms have been measured in `launches_max` launches at most.
template <class AfterLaunch>
void launch_on_one_thread(WorkGroupFunction planned, const driver::HostCode& other, size_t groups, int launches_max,
                          AfterLaunch after_launch) {
    WorkerPool pool({.thread_name = "test", .places = {{0, 0}}});
    HostKernel kernel(code_of(planned));
    auto offered = std::make_unique<Forms>(std::vector<const driver::HostCode*>{&other}, 1 * ms);
    const Forms& forms = *offered;
    kernel.offer(std::move(offered));
    HostQueue queue(pool, {});
    driver::LaunchOperation operation;
    operation.kernel = &kernel;
    operation.global_size[0] = groups;
    for (int i = 0; i < launches_max && forms.times.empty(); ++i) {
        queue.wait(queue.launch(operation, {}).value);
        after_launch();
    }
    EXPECT_TRUE(forms.times.contains(0));
    EXPECT_EQ(forms.best, 0U);
}

// A thread that is alone does not share its launches in chunks, and has to know nevertheless how many groups are a piece.
TEST(FormsInQueues, OfOneThread_AreMeasuredInShortPieces) {
    const driver::HostCode other = code_of(work_for_long<Executed::other>);
    size_t longest = 0;
    launch_on_one_thread(work_for_long<Executed::planned>, other, groups_of_launch, 500, [&] {
        if (std::ranges::find(executed_in, Executed::other) == executed_in.end() ||
            std::ranges::find(executed_in, Executed::planned) == executed_in.end())
            return;
        for (size_t begin = 0, end = 0; begin < groups_of_launch; begin = end) {
            while (end < groups_of_launch && executed_in[end] == executed_in[begin])
                ++end;
            if (executed_in[begin] == Executed::other)
                longest = std::max(longest, end - begin);
        }
    });
    EXPECT_GT(longest, 1U);
    EXPECT_LT(longest, 400U);
}

// A thread that sleeps is as one whose processor another program has.
TEST(FormsInQueues, OfOneThread_AreMeasuredWithoutTheTimeOfOtherPrograms) {
    const auto planned = [](const std::byte*, const LaunchContext*, const uint64_t*, std::byte*, std::byte*) {
        spin(400'000);
    };
    const auto other = [](const std::byte*, const LaunchContext*, const uint64_t*, std::byte*, std::byte*) {
        spin(200'000);
        std::this_thread::sleep_for(std::chrono::microseconds(300));
    };
    launch_on_one_thread(planned, code_of(other), 64, 2000, [] {});
}

}  // namespace
}  // namespace polder::devices
