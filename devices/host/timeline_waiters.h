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
    // False when `completed` has reached the waiter's value already; it is not notified then.
    [[nodiscard]] bool add(driver::FenceWaiter& waiter, const std::atomic<uint64_t>& completed);
    // `completed` has been set to `value` (sequentially consistent) before.
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
