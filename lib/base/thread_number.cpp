#include <base/thread_number.h>

#include <atomic>

namespace polder {

uint32_t thread_number_state::assign() {
    static constinit std::atomic<uint32_t> threads_seen{0};
    // After 2^32 - 1 threads the numbers begin again; no thread gets 0, which is "not assigned".
    do
        number_plus_1 = threads_seen.fetch_add(1, std::memory_order_relaxed) + 1;
    while (number_plus_1 == 0);
    return number_plus_1;
}

}  // namespace polder
