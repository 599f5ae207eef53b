#include <base/membarrier.h>
#include <base/process_fence.h>

#include <chrono>
#include <thread>

namespace polder {

bool may_fence_all_threads() {
    static const bool is_registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    return is_registered;
}

void fence_all_threads() {
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return;
    // A child of a process may have to register again.
    if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return;
    // The process has entered a sandbox that forbids the call. No processor keeps a store from others for milliseconds.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace polder
