// The front cache of the caching allocator, and the steps that take blocks out of waiting: of the front cache, and of those that are pending.
#include <memory/caching_allocator.h>

#include <cstdint>
#include <span>

namespace polder::memory {

[[gnu::noinline]] bool CachingAllocator::lease_from_front(const Request& request, Lease& leased) {
    const uint64_t size = round_size(request.asked.value);
    if (request.asked.value > FrontCache::block_bytes_max)
        return false;
    const auto block = front_.take([&](const Block& held) {
        return held.place.size.value == size && held.region == tag_of(request.terms.queue) &&
               request.alignment.divides(held.address.value);
    });
    if (!block)
        return false;
    leased = {*block, {}, false};
    leased.block.size = request.asked;
    log_allocation(request, leased);
    return true;
}

[[gnu::noinline]] bool CachingAllocator::free_to_front(const Block& block) noexcept {
    return is_quiet() && front_.put(block, [this](std::span<const Block> spare) { take_back(spare); });
}

void CachingAllocator::take_back(std::span<const Block> blocks) noexcept {
    const BiasedLock lock(mutex_);
    for (const Block& block : blocks)
        take_back(block, {});
}

void CachingAllocator::flush_front() noexcept {
    front_.flush([this](std::span<const Block> blocks) { take_back(blocks); });
}

void CachingAllocator::drain_all() {
    drain_in_parts(mutex_, [this]() POLDER_NO_THREAD_SAFETY_ANALYSIS { return drain_at_most(drained_at_most); });
}

void CachingAllocator::drain() {
    flush_front();
    drain_all();
}

}  // namespace polder::memory
