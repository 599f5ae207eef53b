// Which requests for memory wait for which others when they take turns.
#include "support/allocator_fixture.h"

#include <atomic>
#include <chrono>
#include <sys/resource.h>
#include <thread>

namespace polder::memory {
namespace {

using namespace test;

TEST(Turns, OnlyRequestsThatFoundNoRoomMakeLaterOnesWait) {
    Turns turns;
    turns.enter();
    EXPECT_TRUE(turns.requested());
    std::atomic<int> step{0};
    std::thread untried([&] {
        turns.enter_quietly();
        step = 1;
        while (step != 2)
            std::this_thread::yield();
        turns.insist();
        step = 3;
        while (step != 4)
            std::this_thread::yield();
        turns.leave();
    });
    turns.leave();
    while (step != 1)
        std::this_thread::yield();
    EXPECT_FALSE(turns.requested());
    EXPECT_FALSE(turns.try_enter()) << "it has the turn nevertheless";
    step = 2;
    while (step != 3)
        std::this_thread::yield();
    EXPECT_TRUE(turns.requested());
    step = 4;
    untried.join();
    EXPECT_FALSE(turns.requested());
    EXPECT_TRUE(turns.try_enter());
    turns.leave();
}

template <class Policy>
class TurnsOf : public ::testing::Test {};
TYPED_TEST_SUITE(TurnsOf, AllPolicies);

// How often the calling thread has stopped to wait.
long waits() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

// The second thread asks while the first one reserves a region. Once there is room, neither has to wait.
TYPED_TEST(TurnsOf, ThreadsThatMetInTheSlowPathGoOnWithoutWaitingForEachOther) {
    constexpr long pairs = 20'000;
    std::atomic<bool> is_reserving{false}, is_coming{false};
    const AllocatorFixture fixture{TypeParam::settings, {.region = 64 * MiB, .grows = TypeParam::grows}};
    fixture.source->on_call = [&](const char*) {
        if (is_reserving.exchange(true))
            return;
        while (!is_coming)
            std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it has come
    };
    const auto allocate = [&](uint64_t size) {
        for (long i = 0; i < pairs; ++i)
            fixture.pool->free(fixture.take(size), {});
    };
    long waits_of_other = 0;
    std::thread other([&] {
        while (!is_reserving)
            std::this_thread::yield();
        is_coming = true;
        const long before = waits();
        allocate(8 * KiB);
        waits_of_other = waits() - before;
    });
    const long before = waits();
    allocate(4 * KiB);
    const long waits_of_first = waits() - before;
    other.join();
    EXPECT_LT(waits_of_first, pairs / 10);
    EXPECT_LT(waits_of_other, pairs / 10);
}

}  // namespace
}  // namespace polder::memory
