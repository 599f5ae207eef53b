// Waiting for the timelines of queues that are no HostQueues, on threads kept for that: a worker must not
// sleep, and such queues can only be waited for by sleeping.
#pragma once

#include <host/timeline_waiters.h>
#include <polder/driver.h>

namespace polder::devices {

// Notifies `waiter` once `timepoint` is complete, from another thread; false, without a notification, when it already
// is. When no thread can be started, sleeps itself and returns false.
[[nodiscard]] bool wait_elsewhere(driver::Timepoint timepoint, driver::FenceWaiter& waiter);

} // namespace polder::devices
