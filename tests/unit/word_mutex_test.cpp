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

}  // namespace
}  // namespace polder
