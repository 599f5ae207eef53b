// WordMutex: a mutex of one word, for short critical sections that threads seldom enter at the same time. Without contention,
// locking and unlocking are one inlined atomic instruction each; std::mutex needs a call of the C library and four times as many
// instructions. It cannot be used with a condition variable.
//
// The word has a bit for each of: it is held, threads perhaps wait (Drepper, "Futexes Are Tricky", 2004), and it is reserved: a thread that has
// waited for `patience` reserves it, and then only threads that have slept at it take it. Otherwise a thread that locks it again and again, right after
// unlocking, would keep out all others: a thread that is woken finds it held again. (Go's sync.Mutex does the same after the same time.)
// Any thread.
#pragma once

#include <base/mutex.h>

#include <atomic>
#include <chrono>

namespace polder {

class POLDER_THREAD_ANNOTATION(capability("mutex")) WordMutex {
public:
    WordMutex() = default;
    WordMutex(const WordMutex&) = delete;
    WordMutex& operator=(const WordMutex&) = delete;

    void lock() noexcept POLDER_THREAD_ANNOTATION(acquire_capability()) POLDER_NO_THREAD_SAFETY_ANALYSIS {
        if (!try_lock()) [[unlikely]]
            wait();
    }
    [[nodiscard]] bool try_lock() noexcept POLDER_THREAD_ANNOTATION(try_acquire_capability(true)) {
        unsigned expected = 0;
        return state_.compare_exchange_strong(expected, held, std::memory_order_acquire, std::memory_order_relaxed);
    }
    void unlock() noexcept POLDER_THREAD_ANNOTATION(release_capability()) {
        if (state_.fetch_sub(held, std::memory_order_release) != held) [[unlikely]]
            wake();
    }

private:
    static constexpr unsigned held = 1, waited_for = 2, reserved = 4;
    static constexpr std::chrono::milliseconds patience{1};

    [[gnu::noinline]] void wait() noexcept {
        const auto began = std::chrono::steady_clock::now();
        bool has_slept = false;
        for (unsigned reserve = 0;;) {
            unsigned now = state_.load(std::memory_order_relaxed);
            if ((now & held) == 0 && ((now & reserved) == 0 || has_slept)) {
                if (state_.compare_exchange_weak(now, held | waited_for, std::memory_order_acquire,
                                                 std::memory_order_relaxed))
                    return;
                continue;
            }
            const unsigned next = (now & held) != 0 ? now | waited_for | reserve : now;
            if (next != now &&
                !state_.compare_exchange_weak(now, next, std::memory_order_relaxed, std::memory_order_relaxed))
                continue;
            state_.wait(next, std::memory_order_relaxed);
            has_slept = true;
            if (std::chrono::steady_clock::now() - began >= patience)
                reserve = reserved;
        }
    }
    // After it was released, while threads wait. Each of them that takes it says again that threads wait.
    [[gnu::noinline]] void wake() noexcept {
        unsigned expected = waited_for;
        state_.compare_exchange_strong(expected, 0, std::memory_order_relaxed);
        state_.notify_one();
    }
    std::atomic<unsigned> state_{0};
};

// Locks a WordMutex until the end of the scope.
class POLDER_THREAD_ANNOTATION(scoped_lockable) WordLock {
public:
    explicit WordLock(WordMutex& mutex) POLDER_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
        mutex_.lock();
    }
    ~WordLock() POLDER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
    WordLock(const WordLock&) = delete;
    WordLock& operator=(const WordLock&) = delete;

private:
    WordMutex& mutex_;
};

}  // namespace polder
