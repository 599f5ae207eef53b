// Storages that are gone while devices still work on their memory: their on_destroyed functions wait here.
//
// One list per process. Any thread may call; the functions run on the calling thread, without any lock.
#pragma once

#include <polder/driver.h>

namespace polder::memory {

// Calls what is due. Never blocks.
void collect();
// What the oldest storage that is not yet due waits for; complete when there is none. A watcher that waits for it
// and calls collect() again and again until it is complete has called everything.
[[nodiscard]] driver::Timepoint next_destruction();

} // namespace polder::memory
