// The clock of host-executed devices: nanoseconds of CLOCK_MONOTONIC_RAW. Any thread.
#pragma once

#include <cstdint>
#include <ctime>

namespace polder::devices {

[[nodiscard]] inline uint64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

} // namespace polder::devices
