// InterconnectModel: a model of the connection between a separate memory and the rest of the machine.
//
// The bytes are really copied. The model returns the time at which the link would have finished, and the copy completes no
// earlier. Each direction carries one transfer at a time, so that transfers of several queues share its bandwidth; the
// directions are independent of each other. Any thread.
#pragma once

#include <base/mutex.h>

#include <cstdint>

namespace polder::devices {

enum class LinkDirection : uint8_t { local, in, out, peer };

struct LinkSpeed {
    uint64_t bytes_per_second = 0;  // 0: not limited
    uint64_t latency_ns = 0;
};

class InterconnectModel {
public:
    explicit InterconnectModel(LinkSpeed speed) : speed_(speed) {}

    // The time at which a transfer of `bytes` that began at `start_ns` is complete.
    [[nodiscard]] uint64_t reserve(LinkDirection direction, uint64_t bytes, uint64_t start_ns);
    // Returns when `deadline_ns` has passed.
    static void sleep_until(uint64_t deadline_ns);

private:
    const LinkSpeed speed_;
    Mutex mutex_;
    uint64_t busy_until_ns_[4] POLDER_GUARDED_BY(mutex_) = {};
};

}  // namespace polder::devices
