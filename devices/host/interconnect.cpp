#include <algorithm>
#include <ctime>
#include <host/clock.h>
#include <host/interconnect.h>
#include <host/parker.h>

namespace polder::devices {

uint64_t InterconnectModel::reserve(LinkDirection direction, uint64_t bytes, uint64_t start_ns) {
    if (direction == LinkDirection::local)
        return start_ns;
    uint64_t occupied_ns = 0;
    if (speed_.bytes_per_second != 0)
        occupied_ns =
            static_cast<uint64_t>(static_cast<double>(bytes) * 1e9 / static_cast<double>(speed_.bytes_per_second));
    Lock lock(mutex_);
    uint64_t& busy_until_ns = busy_until_ns_[static_cast<size_t>(direction)];
    busy_until_ns = std::max(busy_until_ns, start_ns) + occupied_ns;
    // Latency delays a transfer without occupying the link.
    return busy_until_ns + speed_.latency_ns;
}

void InterconnectModel::sleep_until(uint64_t deadline_ns) {
    // Sleeping is only exact to about 50 us, so the thread spins for the rest.
    constexpr uint64_t sleep_error_ns = 60'000;
    for (uint64_t now = now_ns(); now < deadline_ns; now = now_ns()) {
        const uint64_t left_ns = deadline_ns - now;
        if (left_ns > sleep_error_ns) {
            const uint64_t sleep_ns = left_ns - sleep_error_ns;
            const timespec time{static_cast<time_t>(sleep_ns / 1'000'000'000),
                                static_cast<long>(sleep_ns % 1'000'000'000)};
            nanosleep(&time, nullptr);
        } else {
            spin_pause();
        }
    }
}

} // namespace polder::devices
