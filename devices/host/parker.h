// Parker: one thread sleeps until another thread wakes it. A wake before the sleep is not lost.
//
// Waking a thread that is still spinning (spin_time.h) needs no system call. The sleeper owns the object and
// may destroy it as soon as `park` returns: a waker does not access it afterwards, except for a futex wake
// by address, which is harmless when no thread sleeps there.
#pragma once

#include <atomic>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace polder::devices {

inline void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
inline void futex_wake_one(std::atomic<uint32_t>* word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

class Parker {
public:
    // Returns when `wake` was called after the last `park` returned.
    void park() {
        sleep();
        state_.store(armed, std::memory_order_relaxed);
    }
    // The same. The thread spins before it sleeps.
    template <class SpinTime>
    void park(SpinTime& spinning) {
        spinning.wait([this] { return state_.load(std::memory_order_acquire) == woken; }, [this] { sleep(); });
        state_.store(armed, std::memory_order_relaxed);
    }

    void wake() {
        if (state_.exchange(woken, std::memory_order_acq_rel) == asleep)
            futex_wake_one(&state_);
    }

private:
    void sleep() {
        uint32_t expected = armed;
        if (state_.compare_exchange_strong(expected, asleep, std::memory_order_acquire)) {
            while (state_.load(std::memory_order_acquire) == asleep)
                futex_wait(state_, asleep);
        }
    }

    static constexpr uint32_t armed = 0, woken = 1, asleep = 2;
    std::atomic<uint32_t> state_{armed};
};

} // namespace polder::devices
