// The data caches of the host's first processor, from the kernel's tables.
//
// Read from the system at each call. Any thread.
#pragma once

#include <cstdint>
#include <polder/driver.h>

namespace polder::devices {

struct Caches {
    driver::CacheInfo last_level;
    uint64_t level2_bytes = 0;
};
// All sizes are 0 where the kernel does not report caches.
[[nodiscard]] Caches caches_of_host();

}  // namespace polder::devices
