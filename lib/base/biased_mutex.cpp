#include <base/biased_mutex.h>
#include <base/membarrier.h>

#include <chrono>
#include <thread>

namespace polder {

bool biased_mutex_state::may_own() {
    static const bool is_registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    static constinit std::atomic<uint64_t> last_id{0};
    if (is_registered && thread_id == 0)
        thread_id = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
    return is_registered;
}

void biased_mutex_state::fence_all_threads() {
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return;
    // A child of a process may have to register again.
    if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return;
    // The process has entered a sandbox that forbids the call. No processor keeps a store from others for milliseconds.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace polder
