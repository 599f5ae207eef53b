// Growing ahead of need, where the source takes long to make memory (GrowableRegions::is_slow).
//
// After a region has grown for a request, the pool watches its free memory. When less than half of the next step is free, the pool's
// thread adds that step at the region's end. A step is a quarter of what there is, at most `step_max`, and at most a quarter of what the
// source has left, because other programs use the device as well. A step that fails, or does not fit, is not tried again before a request
// has made the region grow.
//
// The thread has the turn quietly: requests that find room do not wait for it. One that finds none waits for the step instead of asking
// the source itself.
#include "ahead_thread.h"
#include "block_pool_region.h"

#include <base/scope_exit.h>

#include <algorithm>
#include <new>

namespace polder::memory {
namespace {

constexpr uint64_t step_max = uint64_t{256} << 20;

}  // namespace

std::unique_ptr<AheadThread> BlockPool::make_ahead_thread() {
    if (!options_.grows_ahead || discards_ || !source_->growable() || !source_->growable()->is_slow())
        return nullptr;
    return std::make_unique<AheadThread>([](void* pool) noexcept { static_cast<BlockPool*>(pool)->grow_ahead(); },
                                         this);
}

uint64_t BlockPool::step_ahead(const Region& region) const {
    const Alignment page = source_->growable()->page();
    return page.round_up(std::clamp<uint64_t>(region.committed_bytes() / 4, 1, step_max));
}

// From now on, free memory below half of the next step is noticed.
void BlockPool::watch_free_memory(const Region& region) {
    if (ahead_)
        ahead_below_ = step_ahead(region) / 2;
}

void BlockPool::wait_for_growth_ahead() {
    if (ahead_)
        ahead_->wait_until_idle();
}

void BlockPool::request_growth() noexcept {
    if (is_growth_requested_.exchange(false, std::memory_order_relaxed))
        ahead_->request();
}

void BlockPool::grow_ahead() noexcept {
    turns_.enter_quietly();
    const ScopeExit leave{[&]() noexcept { turns_.leave_quietly(); }};
    const uint64_t available = source_->available().value;
    Region* grown = nullptr;  // stays
    ByteRange part;
    {
        const BiasedLock lock(mutex_);
        const auto found = std::ranges::find_if(
            regions_, [](const std::unique_ptr<Region>& region) { return region && region->addresses != 0; });
        if (found == regions_.end())
            return;
        grown = found->get();
        const uint64_t step = step_ahead(*grown);
        // Requests may have got memory, or given some back, since.
        if (reserved_bytes_ - live_bytes_ - deferred_bytes_ >= step / 2) {
            watch_free_memory(*grown);
            return;
        }
        const bool fits = step <= available / 4 && reserved_bytes_ <= limit_ && step <= limit_ - reserved_bytes_ &&
                          step <= grown->addresses - grown->memory.size;
        if (!fits)
            return;
        part = ByteRange::at(grown->memory.size, ByteCount{step});
    }
    try {
        Ladder unused;
        if (!commit_part(*grown, part, unused))
            return;
    } catch (const std::bad_alloc&) {
        return;
    }
    const BiasedLock lock(mutex_);
    watch_free_memory(*grown);
}

}  // namespace polder::memory
