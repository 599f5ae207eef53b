// SpinTime: how long a thread that waits checks again and again before it sleeps, learned from how long it has waited before.
//
// Waking a thread that sleeps takes 5 to 50 us, much of a launch of 100 us. So a thread spins for `longest_ns` where its waits are short, and for
// `least_ns` where they are long: the time doubles after each wait that was short but not short enough, and is halved after each
// longer wait (as the Linux kernel polls for a virtual processor that has halted). After `least_ns` the thread offers its processor to others now and then. When one of them
// takes it, there are more threads than processors, and the thread sleeps at once.
//
// Any thread: several threads that wait for the same thing may share an object.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <host/clock.h>
#include <host/parker.h>
#include <sched.h>

namespace polder::devices {

class SpinTime {
public:
    static constexpr uint32_t least_ns = 5'000, longest_ns = 100'000;

    // Waits until `is_over` returns true, or calls `sleep`, which returns when the wait is over.
    template <class IsOver, class Sleep>
    void wait(IsOver is_over, Sleep sleep) {
        const uint64_t began_ns = now_ns();
        if (spin(is_over, began_ns))
            return;
        sleep();
        waited(now_ns() - began_ns);
    }

    [[nodiscard]] uint32_t limit_ns() const { return limit_ns_.load(std::memory_order_relaxed); }

    // The thread had to sleep, and the wait took so long in all.
    void waited(uint64_t ns) {
        const uint32_t before = limit_ns();
        const uint32_t after = ns < longest_ns ? std::min(2 * before, longest_ns) : std::max(before / 2, least_ns);
        if (after != before)
            limit_ns_.store(after, std::memory_order_relaxed);
    }

private:
    // Another thread that wants this processor keeps it at least so long.
    static constexpr uint64_t taken_ns = 20'000;
    static constexpr uint32_t checks_per_look = 16;

    template <class IsOver>
    bool spin(IsOver is_over, uint64_t began_ns) {
        uint64_t offer_ns = began_ns + least_ns;
        const uint64_t end_ns = began_ns + limit_ns();
        for (;;) {
            for (uint32_t i = 0; i < checks_per_look; ++i) {
                if (is_over())
                    return true;
                spin_pause();
            }
            const uint64_t now = now_ns();
            if (now >= end_ns)
                return false;
            if (now < offer_ns)
                continue;
            sched_yield();
            offer_ns = now_ns() + least_ns;
            if (offer_ns > now + least_ns + taken_ns) {
                limit_ns_.store(least_ns, std::memory_order_relaxed);
                return is_over();
            }
        }
    }

    std::atomic<uint32_t> limit_ns_{least_ns};
};

}  // namespace polder::devices
