// The clocks of host-executed devices, in nanoseconds. Any thread.
#pragma once

#include <cstdint>
#include <ctime>

namespace polder::devices {

[[nodiscard]] inline uint64_t ns_of_clock(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

[[nodiscard]] inline uint64_t now_ns() { return ns_of_clock(CLOCK_MONOTONIC_RAW); }

// How long this thread has worked: time in which others had the processor is not counted. A system call, about ten times as long as now_ns.
[[nodiscard]] inline uint64_t work_ns() { return ns_of_clock(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace polder::devices
