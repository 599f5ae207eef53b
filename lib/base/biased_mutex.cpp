#include <base/biased_mutex.h>

namespace polder {

bool biased_mutex_state::may_own() {
    static constinit std::atomic<uint64_t> last_id{0};
    const bool may = may_fence_all_threads();
    if (may && thread_id == 0)
        thread_id = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
    return may;
}

}  // namespace polder
