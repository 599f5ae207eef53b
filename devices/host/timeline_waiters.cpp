#include <algorithm>
#include <host/timeline_waiters.h>

namespace polder::devices {

bool TimelineWaiters::add(driver::FenceWaiter& waiter, const std::atomic<uint64_t>& completed) {
    Lock lock(mutex_);
    const uint64_t lowest = lowest_awaited_.load(std::memory_order_relaxed);
    lowest_awaited_.store(std::min(lowest, waiter.value));
    // Either this thread sees the completion, or the completing thread sees the waiter's value.
    if (completed.load() >= waiter.value) {
        lowest_awaited_.store(lowest);
        return false;
    }
    waiter.next = first_;
    first_ = &waiter;
    return true;
}

void TimelineWaiters::notify_reached(uint64_t value) {
    driver::FenceWaiter* reached = nullptr;
    {
        Lock lock(mutex_);
        uint64_t lowest = nobody;
        for (driver::FenceWaiter** link = &first_; *link;) {
            driver::FenceWaiter* const waiter = *link;
            if (waiter->value <= value) {
                *link = waiter->next;
                waiter->next = reached;
                reached = waiter;
            } else {
                lowest = std::min(lowest, waiter->value);
                link = &waiter->next;
            }
        }
        lowest_awaited_.store(lowest);
    }
    // Without the lock, because a notified queue may add a waiter here at once.
    while (reached) {
        driver::FenceWaiter* const next = reached->next;
        reached->reached(*reached);
        reached = next;
    }
}

} // namespace polder::devices
