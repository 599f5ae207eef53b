// Backoff: the pauses of a thread that polls the GPU, which become longer. At first the thread spins, because most commands take
// microseconds and a sleep ends about 60 us late (Linux's timer slack is 50 us). After some time it yields between two polls; only
// after the last limit does it sleep. One thread.
#pragma once

#include <algorithm>
#include <ctime>
#include <host/clock.h>
#include <host/parker.h>
#include <sched.h>

namespace polder::cuda {

class Backoff {
public:
    void pause() {
        const uint64_t waited_ns = devices::now_ns() - began_ns_;
        if (waited_ns < alone_ns) {
            for (int i = 0; i < 16; ++i)
                devices::spin_pause();
            return;
        }
        if (waited_ns < awake_ns) {
            ::sched_yield();
            return;
        }
        const timespec time{0, static_cast<long>(std::min<uint64_t>(waited_ns / asleep_part, asleep_ns_max))};
        ::nanosleep(&time, nullptr);
        has_slept_ = true;
    }
    [[nodiscard]] bool has_slept() const { return has_slept_; }

private:
    static constexpr uint64_t alone_ns = 50'000;
    static constexpr uint64_t awake_ns = 1'000'000;
    // A sleep is this part of the time waited so far, so that the thread notices the end late by no more than that and the timer slack (decision 215).
    static constexpr uint64_t asleep_part = 256;
    static constexpr uint64_t asleep_ns_max = 200'000;
    const uint64_t began_ns_ = devices::now_ns();
    bool has_slept_ = false;
};

}  // namespace polder::cuda
