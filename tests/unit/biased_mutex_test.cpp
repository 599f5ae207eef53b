// BiasedMutex: mutual exclusion while it has an owner, while it loses it, and afterwards.
#include <base/biased_mutex.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace polder {
namespace {

using Held = BiasedMutex::Held;

Held lock_once(BiasedMutex& mutex) {
    const Held held = mutex.lock();
    mutex.unlock(held);
    return held;
}
Held lock_in_thread(BiasedMutex& mutex) {
    Held held{};
    std::thread([&] { held = lock_once(mutex); }).join();
    return held;
}

TEST(BiasedMutex, BelongsToItsFirstThreadUntilAnotherOneLocksIt) {
    BiasedMutex mutex;
    if (lock_once(mutex) == Held::by_any)
        GTEST_SKIP() << "the system has no membarrier";
    EXPECT_EQ(lock_once(mutex), Held::by_owner);
    EXPECT_EQ(lock_in_thread(mutex), Held::by_any);
    EXPECT_EQ(lock_once(mutex), Held::by_any);
}

TEST(BiasedMutex, MutexOfAThreadThatHasEndedIsLocked) {
    BiasedMutex mutex;
    static_cast<void>(lock_in_thread(mutex));
    EXPECT_EQ(lock_once(mutex), Held::by_any);
}

TEST(BiasedMutex, OtherThreadsSleepUntilTheOwnerLeaves) {
    BiasedMutex mutex;
    std::atomic<int> passed{0};
    std::vector<std::thread> waiting;
    const Held held = mutex.lock();
    for (int i = 0; i < 3; ++i)
        waiting.emplace_back([&] {
            const BiasedLock lock(mutex);
            ++passed;
        });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than they spin
    EXPECT_EQ(passed, 0);
    mutex.unlock(held);
    for (std::thread& thread : waiting)
        thread.join();
    EXPECT_EQ(passed, 3);
}

// Each round has a new mutex: its owner is inside most of the time when the other threads come.
TEST(BiasedMutex, ThreadsThatComeWhileTheOwnerWorksAreKeptOut) {
    constexpr int rounds = 200;
    constexpr int threads = 3;
    constexpr uint64_t turns = 100;
    std::vector<std::unique_ptr<BiasedMutex>> mutexes;
    for (int round = 0; round < rounds; ++round)
        mutexes.push_back(std::make_unique<BiasedMutex>());
    std::vector<uint64_t> sums(rounds);  // each guarded by its mutex
    std::barrier all{threads};
    std::vector<std::thread> started;
    for (int number = 0; number < threads; ++number)
        started.emplace_back([&, number] {
            for (size_t round = 0; round < rounds; ++round) {
                if (number == 0)
                    static_cast<void>(lock_once(*mutexes[round]));
                all.arrive_and_wait();
                for (uint64_t turn = 0; turn < turns; ++turn) {
                    const BiasedLock lock(*mutexes[round]);
                    const uint64_t before = sums[round];
                    if (round % 16 == 0 && turn % 32 == 0)
                        std::this_thread::yield();  // so that threads meet on one processor, too
                    sums[round] = before + 1;
                }
            }
        });
    for (std::thread& thread : started)
        thread.join();
    for (const uint64_t sum : sums)
        ASSERT_EQ(sum, threads * turns);
}

TEST(BiasedMutex, ThreadsThatComeFirstAtTheSameTimeAreKeptApart) {
    constexpr int rounds = 2000;
    constexpr int threads = 3;
    std::vector<std::unique_ptr<BiasedMutex>> mutexes;
    for (int round = 0; round < rounds; ++round)
        mutexes.push_back(std::make_unique<BiasedMutex>());
    std::vector<uint64_t> sums(rounds);
    std::barrier all{threads};
    std::vector<std::thread> started;
    for (int number = 0; number < threads; ++number)
        started.emplace_back([&] {
            all.arrive_and_wait();
            for (size_t round = 0; round < rounds; ++round)
                for (int turn = 0; turn < 10; ++turn) {
                    const BiasedLock lock(*mutexes[round]);
                    ++sums[round];
                }
        });
    for (std::thread& thread : started)
        thread.join();
    for (const uint64_t sum : sums)
        ASSERT_EQ(sum, uint64_t{threads} * 10);
}

// Only the fence of all threads makes the taker see that the owner is inside: until the owner's store has left its processor, the taker's load is
// older. Stores leave in order, so this takes longest behind stores to lines that the taker has just changed.
class LateStores {
public:
    // Rounds with a new mutex each; returns how many counted wrong. The calling thread is the owner.
    uint64_t run(uint64_t rounds_max, std::chrono::milliseconds time_max) {
        std::thread taker([&] { take(); });
        const auto end = std::chrono::steady_clock::now() + time_max;
        uint64_t wrong = 0;
        for (uint64_t round = 0; round < rounds_max && std::chrono::steady_clock::now() < end; ++round) {
            mutex_.emplace();
            sum_ = 0;
            static_cast<void>(lock_once(*mutex_));
            step_.store(4 * round + 1, std::memory_order_release);
            wait_for(4 * round + 2);
            step_.store(4 * round + 3, std::memory_order_release);
            change_lines(round);
            add();
            wait_for(4 * round + 4);
            wrong += sum_ == 2 ? 0 : 1;
        }
        step_.store(UINT64_MAX, std::memory_order_release);
        taker.join();
        return wrong;
    }

private:
    struct alignas(128) Line {
        std::atomic<uint64_t> value{0};
    };

    void take() {
        for (uint64_t round = 0; wait_for(4 * round + 1); ++round) {
            change_lines(round);
            step_.store(4 * round + 2, std::memory_order_release);
            wait_for(4 * round + 3);
            for (uint64_t i = 0; i < round % 64; ++i)  // the owner's stores take as long as that
                static_cast<void>(step_.load(std::memory_order_acquire));
            add();
            step_.store(4 * round + 4, std::memory_order_release);
        }
    }
    void add() {
        const BiasedLock lock(*mutex_);
        ++sum_;
    }
    void change_lines(uint64_t value) {
        for (Line& line : lines_)
            line.value.store(value, std::memory_order_relaxed);
    }
    // False: there are no more steps.
    bool wait_for(uint64_t step) {
        for (int looks = 0;; ++looks) {
            const uint64_t now = step_.load(std::memory_order_acquire);
            if (now == step || now == UINT64_MAX)
                return now == step;
            if (looks > 1'000'000)
                std::this_thread::yield();
        }
    }

    std::array<Line, 40> lines_;
    alignas(128) std::atomic<uint64_t> step_{0};
    alignas(128) std::optional<BiasedMutex> mutex_;
    alignas(128) uint64_t sum_ = 0;  // guarded by the mutex
};

TEST(BiasedMutex, OwnerWhoseStoresAreLateIsNotOverlooked) {
    if (std::thread::hardware_concurrency() < 2)
        GTEST_SKIP() << "stores are late for other processors only";
    BiasedMutex first;
    if (lock_once(first) == Held::by_any)
        GTEST_SKIP() << "the system has no membarrier";
    EXPECT_EQ(std::make_unique<LateStores>()->run(20'000, std::chrono::milliseconds(500)), 0u);
}

TEST(BiasedMutex, ChildOfAForkTakesTheMutexOfAnotherThread) {
    BiasedMutex mutex;
    static_cast<void>(lock_in_thread(mutex));  // the child does not have this thread
    const pid_t child = fork();
    if (child == 0) {
        static_cast<void>(lock_once(mutex));
        _exit(lock_once(mutex) == Held::by_any ? 0 : 1);
    }
    ASSERT_GT(child, 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace polder
