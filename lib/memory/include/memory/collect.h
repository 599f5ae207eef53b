// Storages that are gone while devices still work on their memory: their on_destroyed functions wait here.
//
// One list per process. Any thread may call; the functions run on the calling thread, without any lock.
#pragma once

#include <optional>
#include <polder/driver.h>

namespace polder::memory {

// Calls what is due. Never blocks.
void collect();
// What a storage whose function has not been taken up by collect() waits for, which may be complete by now; nothing
// when there is none. A watcher that waits for it and calls collect(), again and again until there is none, has called
// everything.
[[nodiscard]] std::optional<driver::Timepoint> next_destruction();

} // namespace polder::memory
