// Storages that are gone, and whose memory devices may still use: see <memory/collect.h>.
#pragma once

#include <polder/driver.h>

namespace polder::memory {

struct DestructionCallback {
    void (*function)(void* data);
    void* data;
};

// Calls the function now, or, when one of `after` is not complete, from a later collect().
void defer_destruction(const DestructionCallback& callback, driver::Waits after);

} // namespace polder::memory
