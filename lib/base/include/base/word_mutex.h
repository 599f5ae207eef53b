// WordMutex: a mutex of one word, for short critical sections that threads seldom enter at the same time. Without contention,
// locking and unlocking are one inlined atomic instruction each; std::mutex needs a call of the C library and four times as many
// instructions. It cannot be used with a condition variable.
//
// The word is 0: free, 1: held, 2: held and perhaps waited for (Drepper, "Futexes Are Tricky", 2004, mutex 2). Any thread.
#pragma once

#include <base/mutex.h>

#include <atomic>

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
        int expected = 0;
        return state_.compare_exchange_strong(expected, 1, std::memory_order_acquire, std::memory_order_relaxed);
    }
    void unlock() noexcept POLDER_THREAD_ANNOTATION(release_capability()) {
        if (state_.exchange(0, std::memory_order_release) == 2) [[unlikely]]
            state_.notify_one();
    }

private:
    [[gnu::noinline]] void wait() noexcept {
        while (state_.exchange(2, std::memory_order_acquire) != 0)
            state_.wait(2, std::memory_order_relaxed);
    }
    std::atomic<int> state_{0};
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
