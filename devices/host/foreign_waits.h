// Waits for timelines of queues that are not HostQueues, on separate threads: a worker must not
// sleep, and a thread that waits for such a queue sleeps. Any thread.
#pragma once

#include <host/timeline_waiters.h>
#include <polder/driver.h>

namespace polder::devices {

// Notifies `waiter` from another thread when `timepoint` is complete. False, without a notification, when it is complete
// already. When no thread can be started, the calling thread waits, then returns false.
[[nodiscard]] bool wait_elsewhere(driver::Timepoint timepoint, driver::FenceWaiter& waiter);

}  // namespace polder::devices
