// WordMutex: mutual exclusion with and without contention.
#include <base/word_mutex.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace polder {
namespace {

TEST(WordMutex, TryLockFailsWhileItIsHeld) {
    WordMutex mutex;
    {
        const WordLock lock(mutex);
        std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
    }
    if (mutex.try_lock())
        mutex.unlock();
    else
        ADD_FAILURE() << "it was released";
}

TEST(WordMutex, ThreadsThatAddUnderItLoseNothing) {
    constexpr int threads = 4;
    constexpr int rounds = 20'000;
    WordMutex mutex;
    uint64_t sum = 0;  // guarded by the mutex
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i)
        all.emplace_back([&] {
            for (int round = 0; round < rounds; ++round) {
                const WordLock lock(mutex);
                const uint64_t before = sum;
                if (round % 64 == 0)
                    std::this_thread::yield();  // so that others meet a held mutex on one processor, too
                sum = before + 1;
            }
        });
    for (std::thread& thread : all)
        thread.join();
    EXPECT_EQ(sum, uint64_t{threads} * rounds);
}

TEST(WordMutex, ThreadThatSleepsAtItIsWokenByUnlock) {
    WordMutex mutex;
    std::atomic<int> passed{0};
    std::vector<std::thread> waiting;
    mutex.lock();
    for (int i = 0; i < 3; ++i)
        waiting.emplace_back([&] {
            const WordLock lock(mutex);
            ++passed;
        });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than they spin
    EXPECT_EQ(passed, 0);
    mutex.unlock();
    for (std::thread& thread : waiting)
        thread.join();
    EXPECT_EQ(passed, 3);
}

// A thread that is woken finds the mutex held again by the one that holds it nearly always. Rounds are counted; nothing is timed.
TEST(WordMutex, ThreadThatLocksAgainAtOnceDoesNotKeepOutAnother) {
    constexpr int turns = 30;
    constexpr int rounds_max = 200'000;
    WordMutex mutex;
    std::atomic<bool> has_begun{false}, is_over{false};
    std::thread other([&] {
        while (!has_begun)
            std::this_thread::yield();
        for (int i = 0; i < turns; ++i)
            const WordLock lock(mutex);
        is_over = true;
    });
    int rounds = 0;
    for (; !is_over && rounds < rounds_max; ++rounds) {
        const WordLock lock(mutex);
        has_begun = true;
        const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
        while (std::chrono::steady_clock::now() < end) {
        }
    }
    EXPECT_LT(rounds, rounds_max);
    other.join();
}

}  // namespace
}  // namespace polder
