// Leasing and freeing of blocks. Reserving and releasing regions is in block_pool_regions.cpp, statistics and the report of a
// failure are in block_pool_figures.cpp.
#include "ahead_thread.h"
#include "block_pool_region.h"
#include "lease_in_turn.h"
#include "poison.h"

#include <base/log.h>
#include <base/scope_exit.h>

#include <cassert>
#include <cinttypes>
#include <new>
#include <utility>

namespace polder::memory {
namespace {

// The bytes after each block in sanitizer builds, so that an overrun does not reach the next block.
constexpr uint64_t red_zone_bytes = 128;
// Lease::is_fresh is not set for smaller ranges without pages.
constexpr uint64_t fresh_bytes_min = uint64_t{4} << 20;

// A pending block is used again as a whole, so it must not be much larger than the request.
bool fits_well(const Block& block, ByteCount size, Alignment alignment) {
    const uint64_t has = block.place.size.value;
    return has >= size.value && has - size.value <= std::max<uint64_t>(size.value / 8, 256) &&
           alignment.divides(block.address.value);
}

}  // namespace

BlockPool::BlockPool(std::unique_ptr<RegionSource> source, const Options& options)
    : source_(std::move(source)), options_(options), poisons_(poisoning && options.space.is_host()),
      discards_(source_->discards()), limit_(options.limit.value), ahead_(make_ahead_thread()) {}

BlockPool::~BlockPool() {
    if (ahead_)
        ahead_->cancel();
    Removed removed;
    for (uint32_t index = 0; index < regions_.size(); ++index)
        if (regions_[index])
            remove_region(index, removed);
    give_to_source(std::move(removed));
}

// ---- leasing ----

BlockPool::Request BlockPool::full(const LeaseRequest& request, const LeaseTerms& terms) const {
    const uint64_t behind = poisons_ ? red_zone_bytes : 0;
    return {request.size, ByteCount{request.size.value + behind}, request.alignment, terms};
}

Result<void> BlockPool::lease(std::span<const LeaseRequest> requests, const LeaseTerms& terms,
                              std::span<Lease> leases) {
    assert(requests.size() == leases.size());
    const bool in_turn = !turns_.requested();
    if (in_turn && requests.size() == 1 && front_.is_on() && lease_from_front(requests[0], leases[0]))
        return {};
    if (!in_turn || !lease_quickly(requests, terms, leases))
        POLDER_TRY(lease_by_ladder(requests, terms, in_turn ? Tried::yes : Tried::no, leases));
    for (Lease& leased : leases)
        if (std::exchange(leased.is_fresh, false)) [[unlikely]]
            source_->prepare({leased.block.address, leased.block.place.size.value});
    purge_if_requested();
    if (is_growth_requested_.load(std::memory_order_relaxed)) [[unlikely]]
        request_growth();
    if (terms.consumer == LeaseTerms::Consumer::device) [[likely]]
        return {};
    for (Lease& leased : leases) {
        for (const driver::Timepoint& point : leased.after)
            point.queue->wait(point.value);
        leased.after.clear();
    }
    return {};
}

bool BlockPool::lease_from_front(const LeaseRequest& request, Lease& leased) {
    if (request.size.value > FrontCache::block_bytes_max)
        return false;
    const auto block = front_.take([&](const Block& held) {
        return fits_well(held, ByteCount{std::max<uint64_t>(request.size.value, 1)}, request.alignment);
    });
    if (!block)
        return false;
    leased.block = *block;
    leased.block.size = request.size;
    leased.after.clear();
    POLDER_LOG(memory, "space %u: allocate %" PRIu64 " bytes at 0x%" PRIx64, options_.space.value, request.size.value,
               block->address.value);
    return true;
}

// Leases all blocks of a group under one lock, so that two groups never have some blocks each and wait for the others.
bool BlockPool::lease_quickly(std::span<const LeaseRequest> requests, const LeaseTerms& terms,
                              std::span<Lease> leases) {
    NotingLock lock(mutex_, front_);
    drain_at_most(drained_at_most);
    if (requests.size() == 1) [[likely]]
        return try_pool(full(requests[0], terms), Search::quick, leases[0]);
    return try_all(requests, terms, Search::quick, leases);
}

bool BlockPool::try_all(std::span<const LeaseRequest> requests, const LeaseTerms& terms, Search search,
                        std::span<Lease> leases) {
    size_t done = 0;
    // Frees the blocks of this group when a later request fails or throws.
    const ScopeExit undo{[&]() POLDER_NO_THREAD_SAFETY_ANALYSIS noexcept {
        if (done != requests.size()) [[unlikely]]
            for (Lease& leased : leases.first(done))
                give_up(leased.block, std::move(leased.after));
    }};
    while (done < requests.size() && try_pool(full(requests[done], terms), search, leases[done]))
        ++done;
    return done == requests.size();
}

Result<void> BlockPool::lease_by_ladder(std::span<const LeaseRequest> requests, const LeaseTerms& terms, Tried tried,
                                        std::span<Lease> leases) {
    Result<void> result = lease_in_turn(
        turns_, terms.when_full, tried, leases, [&] { return lease_quickly(requests, terms, leases); },
        [&](size_t index, Lease& leased) { return climb(full(requests[index], terms), leased); },
        [&](const Lease& gained) { free(gained.block, gained.after.view()); });
    if (!result && requests.size() > 1 && lease_anew(requests, terms, leases))
        return {};
    return result;
}

// A second try for a group: its first blocks may have got pending blocks whose neighbours the other blocks need. So all pending blocks are
// merged with their free neighbours first.
bool BlockPool::lease_anew(std::span<const LeaseRequest> requests, const LeaseTerms& terms, std::span<Lease> leases) {
    if (terms.consumer == LeaseTerms::Consumer::host)
        return false;
    const BiasedLock lock(mutex_);
    for (uint32_t index = 0; index < regions_.size(); ++index)
        if (regions_[index])
            merge_pending(index);
    return try_all(requests, terms, Search::thorough, leases);
}

Result<void> BlockPool::climb(const Request& request, Lease& leased) {
    flush_front();
    for (Ladder ladder;; ++ladder.waited) {
        drain_all();
        if (try_steps(request, ladder, leased)) {
            const BiasedLock lock(mutex_);
            retries_ += ladder.waited != 0 || ladder.trimmed_bytes != 0 ? 1 : 0;
            return {};
        }
        std::optional<driver::Timepoint> pending;
        if (request.terms.when_full == WhenFull::wait) {
            const BiasedLock lock(mutex_);
            pending = oldest_in_flight();
        }
        if (!pending) {
            {
                const BiasedLock lock(mutex_);
                ++out_of_memory_;
            }
            std::string text = report(request, ladder);
            POLDER_LOG(memory, "%s", text.c_str());
            return fail(Status::mem_object_allocation_failure, std::move(text));
        }
        pending->queue->wait(pending->value);
    }
}

bool BlockPool::try_steps(const Request& request, Ladder& ladder, Lease& leased) {
    bool allowed = false;
    {
        const BiasedLock lock(mutex_);
        allowed = request.size >= request.asked && within_limit(request.size);
        const bool much_pending = deferred_bytes_ >= options_.cache_max.value;
        if (try_pool(request, Search::thorough, leased) || (allowed && merge_own_pending(request, leased)) ||
            ((much_pending || !allowed) && reuse_of_any_queue(request, leased)))
            return true;
    }
    if (!allowed)
        return false;
    if (grow(request, ladder, leased) || regroup(request, ladder, leased))
        return true;
    const BiasedLock lock(mutex_);
    return reuse_of_any_queue(request, leased) || merge_pending(request, leased);
}

// ---- places for a block ----

bool BlockPool::try_pool(const Request& request, Search search, Lease& leased) {
    if (pending_.size() != 0 && reuse_of_queue(request, leased))
        return true;
    if (request.size < request.asked || !within_limit(request.size))
        return false;
    // Searches older regions first, so that newer ones become empty and can be released.
    for (uint32_t index = 0; index < regions_.size(); ++index)
        if (regions_[index] && may_have_room(*regions_[index], request, search) &&
            try_region(index, request, search, leased))
            return true;
    return false;
}

// After a quick search of a region has failed, searches for this size and larger ones are skipped until a block of the region is freed. So
// there are at most as many failed searches as freed blocks, however many regions there are.
bool BlockPool::may_have_room(const Region& region, const Request& request, Search search) {
    return search == Search::thorough || request.size.value < region.no_room_from;
}

bool BlockPool::within_limit(ByteCount size) const {
    const uint64_t held = live_bytes_ + deferred_bytes_;
    return held <= limit_ && size.value <= limit_ - held;
}

void BlockPool::count_live(uint64_t bytes) {
    live_bytes_ += bytes;
    live_peak_bytes_ = std::max(live_peak_bytes_, live_bytes_);
    ++live_blocks_;
    ++allocations_;
}

bool BlockPool::try_region(uint32_t index, const Request& request, Search search, Lease& leased) {
    Region& region = *regions_[index];
    pending_.provide(live_blocks_ + pending_.size() + 1);
    const auto place = region.allocator.allocate(request.size, request.alignment, search);
    if (!place) {
        if (request.alignment <= options_.granularity)
            region.no_room_from = std::min(region.no_room_from, request.size.value);
        return false;
    }
    const uint64_t bytes = place->size.value;
    leased.after.clear();
    leased.is_fresh = false;
    if (discards_ || !region.unready.empty())
        take_state(region, *place, leased);
    count_live(bytes);
    if (discards_)
        request_purge_over_limit();
    if (reserved_bytes_ - live_bytes_ - deferred_bytes_ < ahead_below_) [[unlikely]] {
        ahead_below_ = 0;
        is_growth_requested_.store(true, std::memory_order_relaxed);
    }
    leased.block = {region.memory.address.plus(place->offset), request.asked, index, *place};
    if (bytes >= spread_bytes_min)
        newest_large_ = leased.block.address;
    if (poisons_)
        unpoison(leased.block.address, leased.block.size);
    POLDER_LOG(memory, "space %u: allocate %" PRIu64 " bytes at 0x%" PRIx64, options_.space.value, request.asked.value,
               leased.block.address.value);
    return true;
}

// Moves what the region knows of the place to the lease: whether it is ready, and whether it has pages. std::bad_alloc frees the place.
void BlockPool::take_state(Region& region, const RegionAllocator::Block& place, Lease& leased) {
    std::vector<Region::Unready> unready_before;
    try {
        if (discards_ && !region.unready.empty()) [[unlikely]]
            unready_before = region.unready;
        region.take_unready(place.range(), leased);
        if (discards_) {
            const uint64_t fresh = region.clean.erase(place.range());
            cached_bytes_ -= place.size.value - fresh;
            leased.is_fresh = fresh >= fresh_bytes_min;
        }
    } catch (const std::bad_alloc&) {
        if (!unready_before.empty())
            region.unready.swap(unready_before);
        region.free(place);
        throw;
    }
}

// A pending block that only the request's queue still uses: the queue's next command can use it without a wait.
bool BlockPool::reuse_of_queue(const Request& request, Lease& leased) {
    if (request.terms.consumer == LeaseTerms::Consumer::host || !request.terms.queue)
        return false;
    auto found = pending_.take_of(
        request.terms.queue, [&](const Block& block) { return fits_well(block, request.size, request.alignment); });
    if (!found)
        return false;
    leased = std::move(*found);
    reuse(request, leased);
    return true;
}

bool BlockPool::reuse_of_any_queue(const Request& request, Lease& leased) {
    if (request.terms.consumer == LeaseTerms::Consumer::host)
        return false;
    auto found =
        pending_.take_any([&](const Block& block) { return fits_well(block, request.size, request.alignment); });
    if (!found)
        return false;
    leased = std::move(*found);
    reuse(request, leased);
    return true;
}

void BlockPool::reuse(const Request& request, Lease& leased) {
    const uint64_t bytes = leased.block.place.size.value;
    deferred_bytes_ -= bytes;
    regions_[leased.block.region]->pending_bytes -= bytes;
    count_live(bytes);
    leased.block.size = request.asked;
    if (poisons_)
        unpoison(leased.block.address, leased.block.size);
    POLDER_LOG(memory, "space %u: allocate %" PRIu64 " bytes at 0x%" PRIx64 ", in use until %zu commands are complete",
               options_.space.value, request.asked.value, leased.block.address.value, size_t{leased.after.size()});
}

// Merges the pending blocks of a region into free memory that is not ready, when that makes room for the request.
bool BlockPool::merge_pending(const Request& request, Lease& leased) {
    if (request.terms.consumer == LeaseTerms::Consumer::host)
        return false;
    for (uint32_t index = 0; index < regions_.size(); ++index) {
        Region* region = regions_[index].get();
        if (!region || region->pending_bytes == 0 ||
            region->pending_bytes + region->allocator.free_bytes().value < request.size.value)
            continue;
        merge_pending(index);
        if (try_region(index, request, Search::thorough, leased))
            return true;
    }
    return false;
}

// The timepoint of the oldest pending block; without one, that of a free range that is not ready: releasing its pages may make room.
std::optional<driver::Timepoint> BlockPool::oldest_in_flight() const {
    if (const auto pending = pending_.oldest())
        return pending;
    for (const auto& region : regions_)
        if (region)
            for (const Region::Unready& part : region->unready)
                if (!part.until.is_complete())
                    return part.until;
    return std::nullopt;
}

void BlockPool::merge_pending(uint32_t index, ByteRange within) {
    Region& region = *regions_[index];
    pending_.take_all([&](const Block& block) { return block.region == index && within.contains(block.place.range()); },
                      [&](const PendingBlocks::Entry& entry) POLDER_NO_THREAD_SAFETY_ANALYSIS {
                          const ByteRange range = entry.block.place.range();
                          region.unready.reserve(region.unready.size() + 1 + entry.afterwards.size());
                          region.unready.push_back({range, entry.until});
                          for (const driver::Timepoint& point : entry.afterwards)
                              region.unready.push_back({range, point});
                          region.free(entry.block.place);
                          region.pending_bytes -= range.size();
                          deferred_bytes_ -= range.size();
                          if (discards_)
                              cached_bytes_ += range.size();
                      });
}

bool BlockPool::charge(ByteCount bytes) {
    bool has_charged = false;
    for (int attempt = 0; attempt < 2 && !has_charged; ++attempt) {
        if (attempt != 0) {
            flush_front();
            drain_all();
        }
        const BiasedLock lock(mutex_);
        if (!within_limit(bytes))
            continue;
        live_bytes_ += bytes.value;
        live_peak_bytes_ = std::max(live_peak_bytes_, live_bytes_);
        charged_bytes_ += bytes.value;
        request_purge_over_limit();
        has_charged = true;
    }
    purge_if_requested();
    return has_charged;
}

void BlockPool::discharge(ByteCount bytes) noexcept {
    const BiasedLock lock(mutex_);
    live_bytes_ -= bytes.value;
    charged_bytes_ -= bytes.value;
}

// ---- freeing ----

void BlockPool::free_after(const Block& block, Timepoints&& after) noexcept {
    drop_complete(after);
    POLDER_LOG(memory, "space %u: free %" PRIu64 " bytes at 0x%" PRIx64 "%s", options_.space.value, block.size.value,
               block.address.value, after.empty() ? "" : " when its uses are complete");
    if (after.empty() && front_.is_on() && !poisons_ && !turns_.requested() &&
        front_.put(block, [this](std::span<const Block> spare) { give_up(spare); }))
        return;
    bool purges = false;
    {
        NotingLock lock(mutex_, front_);
        give_up(block, std::move(after));
        purges = must_purge();
    }
    if (purges) [[unlikely]]
        purge(&block);
}

void BlockPool::give_up(std::span<const Block> blocks) noexcept {
    const BiasedLock lock(mutex_);
    for (const Block& block : blocks)
        give_up(block, {});
}

// Frees the blocks of the front cache to their regions.
void BlockPool::flush_front() noexcept {
    front_.flush([this](std::span<const Block> blocks) { give_up(blocks); });
}

void BlockPool::give_up(const Block& block, Timepoints&& after) noexcept {
    const uint64_t bytes = block.place.size.value;
    live_bytes_ -= bytes;
    --live_blocks_;
    if (after.empty()) [[likely]] {
        take_back(block);
        return;
    }
    deferred_bytes_ += bytes;
    regions_[block.region]->pending_bytes += bytes;
    pending_.add(block, std::move(after));
}

uint32_t BlockPool::drain_at_most(uint32_t count) {
    return pending_.drain(count, [this](const Block& block) POLDER_NO_THREAD_SAFETY_ANALYSIS {
        deferred_bytes_ -= block.place.size.value;
        regions_[block.region]->pending_bytes -= block.place.size.value;
        take_back(block);
    });
}

void BlockPool::drain_all() {
    drain_in_parts(mutex_, [this]() POLDER_NO_THREAD_SAFETY_ANALYSIS { return drain_at_most(drained_at_most); });
}

void BlockPool::drain() {
    flush_front();
    drain_all();
    bool purges = false;
    {
        const BiasedLock lock(mutex_);
        purges = must_purge();
    }
    if (purges)
        purge(nullptr);
}

void BlockPool::take_back(const Block& block) {
    Region& region = *regions_[block.region];
    if (poisons_)
        poison(block.address, ByteCount{block.place.size.value});
    region.free(block.place);
    if (discards_)
        cached_bytes_ += block.place.size.value;
}

}  // namespace polder::memory
