#include "shortage.h"

#include <base/log.h>

namespace polder::memory {
namespace {

// The message is reported when so many times the memory's size was evicted and needed again.
constexpr uint64_t fillings_reported = 4;

} // namespace

void Shortage::count_returned(uint64_t bytes) {
    const uint64_t returned = returned_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    const uint64_t total = space_.total_bytes().value;
    if (returned / fillings_reported < total || is_reported_.exchange(true, std::memory_order_relaxed))
        return;
    POLDER_LOG(memory,
               "space %u: the buffers in use need more than its %llu bytes: %llu bytes were evicted and needed again",
               space_.id().value, static_cast<unsigned long long>(total), static_cast<unsigned long long>(returned));
}

} // namespace polder::memory
