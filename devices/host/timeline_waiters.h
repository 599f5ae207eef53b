// TimelineWaiters: the queues and threads to notify when a timeline reaches a value.
//
// Belongs to a queue. Any thread may add a waiter; the thread that advances the timeline calls `notify`, which costs one
// load while no thread waits for the value.
#pragma once

#include <base/mutex.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <polder/driver.h>

namespace polder::devices {

class TimelineWaiters {
public:
    // False, and the waiter will not be notified, when `completed` has reached its value already.
    [[nodiscard]] bool add(driver::FenceWaiter& waiter, const std::atomic<uint64_t>& completed);
    // Notifies the waiters up to `value`. The caller has stored `value` to `completed` (sequentially consistent).
    void notify(uint64_t value) {
        if (value >= lowest_awaited_.load()) [[unlikely]]
            notify_reached(value);
    }

private:
    void notify_reached(uint64_t value);

    static constexpr uint64_t nobody = std::numeric_limits<uint64_t>::max();
    std::atomic<uint64_t> lowest_awaited_{nobody};
    Mutex mutex_;
    driver::FenceWaiter* first_ POLDER_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace polder::devices
