// The regions of a BlockPool: reserving them, releasing them, and giving the pages of free memory back to the system.
// Every call to the source is made without the pool's lock, by the thread that has the turn.
#include "ahead_thread.h"
#include "block_pool_region.h"
#include "poison.h"

#include <base/log.h>
#include <base/scope_exit.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <new>
#include <utility>

namespace polder::memory {
namespace {

// The size from which giving a free range back to the system is worth a system call.
constexpr ByteCount purged_at_least{uint64_t{64} << 10};
// When the pool is at its limit, at least so many bytes are freed between two purges.
constexpr uint64_t purge_step_bytes = uint64_t{1} << 20;

// The parts of `range` before and after `hole`.
std::pair<ByteRange, ByteRange> around(ByteRange range, ByteRange hole) {
    if (!range.overlaps(hole))
        return {range, {}};
    const ByteRange inner = range.intersect(hole);
    return {{range.begin, inner.begin}, {inner.end, range.end}};
}

} // namespace

// Reserves a region of the source's preferred size; if that fails, of all that the source has; if that fails, of the block's size.
bool BlockPool::grow(const Request& request, Ladder& ladder, Lease& leased) {
    if (!discards_ && source_->growable() && grow_in_place(request, ladder, leased))
        return true;
    uint64_t reserved = 0;
    {
        const BiasedLock lock(mutex_);
        reserved = reserved_bytes_;
    }
    // A region holds whole granules.
    const uint64_t asked = std::max<uint64_t>(request.size.value, 1);
    const uint64_t least = std::max(asked, options_.granularity.round_up(asked));
    const uint64_t alignment = std::max(request.alignment, options_.granularity).value;
    const uint64_t with_padding = least + (alignment - options_.granularity.value);
    const uint64_t enough = std::max(least, with_padding);  // when the sum does not overflow
    const uint64_t preferred = source_->preferred_size(ByteCount{enough}, ByteCount{reserved}).value;
    const uint64_t all = std::clamp(source_->available().value, enough, preferred);
    uint64_t tried = 0;
    for (const uint64_t size : {preferred, all, enough, least, std::max(least, least + alignment)})
        if (std::exchange(tried, size) != size && grow_by(ByteCount{size}, request, ladder, leased))
            return true;
    return false;
}

bool BlockPool::grow_by(ByteCount size, const Request& request, Ladder& ladder, Lease& leased) {
    const auto memory = source_->reserve(size);
    if (!memory) {
        ladder.source_said = memory.error().detail();
        return false;
    }
    Removed removed;
    bool done = false;
    bool is_added = false;
    const ScopeExit give_back{[&]() noexcept {
        if (!is_added)
            source_->release(*memory);
    }};
    {
        const BiasedLock lock(mutex_);
        ++reserves_;
        const uint32_t index = add_region(*memory);
        is_added = true;
        done = try_region(index, request, Search::thorough, leased);
        if (!done)  // the region is large enough, but no address in it has the alignment
            remove_region(index, removed);
    }
    give_to_source(std::move(removed));
    return done;
}

// Kernels use the same element of several buffers, whose rows are often multiples of 4096 bytes. If the addresses were equal modulo 4096, all of
// these rows would be in the same sets of the first-level cache, and loads would wait for stores to other addresses.
RegionAllocator::Spread BlockPool::spread_of_next_region() const {
    if (!options_.spreads_in_pages)
        return {};
    return {spread_bytes_min, spread_step, newest_large_.value + spread_step};
}

uint32_t BlockPool::add_region(driver::Memory memory) {
    const auto hole = std::find(regions_.begin(), regions_.end(), nullptr);
    const auto index = static_cast<uint32_t>(hole - regions_.begin());
    auto region = std::make_unique<Region>(memory, options_.granularity, spread_of_next_region());
    if (discards_)
        region->allocator.for_each_free(ByteCount{1}, [&](ByteRange range) { region->clean.insert(range); });
    if (hole == regions_.end())
        regions_.push_back(std::move(region));
    else
        *hole = std::move(region);
    // From here on nothing fails.
    reserved_bytes_ += memory.size;
    reserved_peak_bytes_ = std::max(reserved_peak_bytes_, reserved_bytes_);
    if (poisons_)
        poison(memory.address, ByteCount{memory.size});
    POLDER_LOG(memory, "space %u: reserve a region of %" PRIu64 " bytes at 0x%" PRIx64, options_.space.value,
               memory.size, memory.address.value);
    return index;
}

void BlockPool::remove_region(uint32_t index, Removed& removed) {
    std::unique_ptr<Region> region = std::move(regions_[index]);
    if (discards_)
        cached_bytes_ -= region->cached();
    reserved_bytes_ -= region->committed_bytes();
    if (poisons_)
        unpoison(region->memory.address, ByteCount{region->memory.size});
    POLDER_LOG(memory, "space %u: give back a region of %" PRIu64 " bytes at 0x%" PRIx64, options_.space.value,
               region->memory.size, region->memory.address.value);
    region->next_removed = std::move(removed.regions);
    removed.regions = std::move(region);
}

// Called without the lock, because the source makes system calls or calls the driver.
void BlockPool::give_to_source(Removed removed) {
    for (const driver::Memory& pages : removed.pages)
        source_->growable()->decommit(pages);
    for (std::unique_ptr<Region> region = std::move(removed.regions); region;
         region = std::move(region->next_removed)) {
        if (region->addresses != 0)
            source_->growable()->release_addresses({region->memory.address, region->addresses});
        else
            source_->release(region->memory);
    }
}

uint64_t BlockPool::remove_unused_regions(const Block* keep, Removed& removed) {
    const uint64_t before = reserved_bytes_;
    for (uint32_t index = 0; index < regions_.size(); ++index) {
        if (!regions_[index] || (keep && keep->region == index))
            continue;
        if (regions_[index]->addresses != 0)
            remove_idle_pages(*regions_[index], {}, UINT64_MAX, removed);
        else if (regions_[index]->is_unused())
            remove_region(index, removed);
    }
    return before - reserved_bytes_;
}

// Makes one region out of several unused ones, when that may help.
bool BlockPool::regroup(const Request& request, Ladder& ladder, Lease& leased) {
    const uint64_t available = source_->available().value;
    Removed removed;
    // Also when host memory runs out halfway.
    const ScopeExit give_back{[&]() noexcept { give_to_source(std::move(removed)); }};
    {
        const BiasedLock lock(mutex_);
        uint64_t unused = 0;
        for (const auto& region : regions_)
            if (region && region->addresses == 0 && region->memory.size < request.size.value && region->is_unused())
                unused += region->memory.size;
        if (unused == 0 || unused + available < request.size.value)
            return false;
        ladder.trimmed_bytes += remove_unused_regions(nullptr, removed);
    }
    give_to_source(std::move(removed));
    return grow(request, ladder, leased);
}

// ---- giving memory back to the system ----

uint64_t BlockPool::cache_allowed() const {
    const uint64_t held = std::min(limit_, live_bytes_ + deferred_bytes_);
    return std::min(options_.cache_max.value, limit_ - held);
}

bool BlockPool::must_purge() const {
    if (!discards_)
        return false;
    const uint64_t allowed = cache_allowed();
    return cached_bytes_ > allowed && cached_bytes_ > cached_after_purge_bytes_ + allowed / 2;
}

// Requests a purge when the memory in use and the free memory with pages exceed the limit together: a request may have got memory without
// pages. There must be purge_step_bytes freed since the last purge, so that purges cost little for each freed byte.
void BlockPool::request_purge_over_limit() {
    const uint64_t held = std::min(limit_, live_bytes_ + deferred_bytes_);
    if (cached_bytes_ > limit_ - held && cached_bytes_ >= cached_after_purge_bytes_ + purge_step_bytes) [[unlikely]]
        is_purge_requested_.store(true, std::memory_order_relaxed);
}

void BlockPool::purge_if_requested() noexcept {
    if (is_purge_requested_.load(std::memory_order_relaxed) &&
        is_purge_requested_.exchange(false, std::memory_order_relaxed)) [[unlikely]]
        purge(nullptr);
}

// Free blocks with pages, allocated in their region by this object while the system takes the pages back.
struct BlockPool::Claims {
    Region* region = nullptr;  // is not removed, because it has blocks
    std::array<RegionAllocator::Block, 64> places;
    size_t count = 0;
    std::vector<ByteRange> warm;  // the parts of the blocks that the system backs
    const Block* keep = nullptr;
    uint32_t region_index = 0;

    // Calls f(ByteRange) for the parts of a free block that are worth a system call.
    template <class F>
    void for_each_part(ByteRange range, F&& f) const {
        const ByteRange kept = keep && keep->region == region_index ? keep->place.range() : ByteRange{};
        const auto [before, behind] = around(range, kept);
        for (const ByteRange part : {before, behind})
            if (part.size() >= purged_at_least.value)
                f(part);
    }
    // Notes the pages of a free block that the system still backs; false when there are none.
    [[nodiscard]] bool note_warm(ByteRange range) {
        const size_t before = warm.size();
        for_each_part(range, [&](ByteRange part) {
            region->clean.for_each_missing(part, [&](ByteRange missing) { warm.push_back(missing); });
        });
        return warm.size() != before;
    }
};

// Gives all free memory back to the system, except for small ranges and the block that was freed last, which is the most likely to be used
// again. The next purge comes only after half of the cache's size was freed, so that purges cost little for each freed byte.
// Does nothing when a request has the turn (a later call will), and ends early when there is no host memory for its lists.
void BlockPool::purge(const Block* keep) noexcept {
    if (!turns_.try_enter_quietly())
        return;
    try {
        purge_in_turn(keep);
    } catch (const std::bad_alloc&) {
        POLDER_LOG(memory, "space %u: free pages are kept for lack of host memory", options_.space.value);
    }
    turns_.leave_quietly();
}

void BlockPool::purge_in_turn(const Block* keep) {
    Removed removed;
    // Also when host memory runs out halfway.
    const ScopeExit give_back{[&]() noexcept { give_to_source(std::move(removed)); }};
    Claims claims;
    size_t regions = 0;
    {
        const BiasedLock lock(mutex_);
        claims.keep = keep && keep->place.size.value <= cache_allowed() ? keep : nullptr;
        remove_unused_regions(claims.keep, removed);
        regions = regions_.size();
    }
    give_to_source(std::move(removed));
    for (claims.region_index = 0; claims.region_index < regions; ++claims.region_index)
        while (claim_dirty(claims)) {
            for (const ByteRange range : claims.warm)
                source_->discard(claims.region->part(range));
            return_clean(claims);
        }
    const BiasedLock lock(mutex_);
    cached_after_purge_bytes_ = cached_bytes_;
}

bool BlockPool::claim_dirty(Claims& claims) {
    const BiasedLock lock(mutex_);
    claims.region = regions_[claims.region_index].get();
    if (!claims.region)
        return false;
    claims.warm.clear();
    claims.count = claims.region->allocator.take_free(purged_at_least, claims.places,
                                                      [&](ByteRange range) { return claims.note_warm(range); });
    return claims.count != 0;
}

void BlockPool::return_clean(const Claims& claims) {
    const BiasedLock lock(mutex_);
    Region& region = *claims.region;
    for (const RegionAllocator::Block& place : std::span{claims.places}.first(claims.count))
        region.free(place);
    for (const RegionAllocator::Block& place : std::span{claims.places}.first(claims.count))
        claims.for_each_part(place.range(), [&](ByteRange part) POLDER_NO_THREAD_SAFETY_ANALYSIS {
            const uint64_t before = region.clean.size_bytes();
            region.clean.insert(part);
            cached_bytes_ -= region.clean.size_bytes() - before;
        });
}

void BlockPool::trim() {
    if (ahead_)
        ahead_->cancel();
    flush_front();
    drain_all();
    turns_.enter_quietly();
    const ScopeExit leave{[&]() noexcept { turns_.leave_quietly(); }};
    Removed removed;
    // Also when host memory runs out halfway.
    const ScopeExit give_back{[&]() noexcept { give_to_source(std::move(removed)); }};
    {
        const BiasedLock lock(mutex_);
        ahead_below_ = 0;
        remove_unused_regions(nullptr, removed);
    }
    give_to_source(std::move(removed));
    if (discards_)
        purge_in_turn(nullptr);
}

}  // namespace polder::memory
