// Blocks of the caching allocator: finding, splitting, freeing, merging. caching_segments.cpp has what it asks of its
// source, and what it gives back.
#include <base/log.h>
#include <memory/caching_allocator.h>

#include <cassert>
#include <cinttypes>
#include <new>
#include <utility>

namespace polder::memory {
namespace {

constexpr uint64_t MiB = uint64_t{1} << 20;
// PyTorch's constants.
constexpr uint64_t block_bytes_min = 512;
constexpr uint64_t small_bytes_max = MiB;
constexpr uint64_t small_segment_bytes = 2 * MiB;
constexpr uint64_t large_segment_bytes = 20 * MiB;
constexpr uint64_t own_segment_bytes_min = 10 * MiB;
constexpr uint64_t segment_rounding = 2 * MiB;
// Blocks taken back by one ordinary allocation.
constexpr uint32_t drained_at_most = 32;

}  // namespace

CachingAllocator::CachingAllocator(std::unique_ptr<RegionSource> source, const AllocationPolicy& policy,
                                   const AllocatorOptions& options)
    : TurnAllocator(std::move(source), options, Tally::Writers::one_at_a_time), policy_(policy),
      min_block_(std::max(block_bytes_min, options.granularity.value)) {}

CachingAllocator::~CachingAllocator() {
    for (const Segment& segment : segments_) {
        if (segment.reserved_addresses != 0)
            source_->growable()->release_addresses({segment.memory.address, segment.reserved_addresses});
        else if (segment.memory.size != 0)
            source_->release(segment.memory);
    }
}

uint64_t CachingAllocator::round_size(uint64_t bytes) const {
    if (bytes <= min_block_)
        return min_block_;
    const uint64_t divided = policy_.round_to_division(bytes);
    const uint64_t rounded = Alignment{min_block_}.round_up(divided);
    return rounded < bytes ? bytes : rounded;  // overflow: refused by the limit or the source
}

uint64_t CachingAllocator::segment_size(uint64_t rounded) {
    if (rounded <= small_bytes_max)
        return small_segment_bytes;
    if (rounded < own_segment_bytes_min)
        return large_segment_bytes;
    const uint64_t size = Alignment{segment_rounding}.round_up(rounded);
    return size < rounded ? rounded : size;
}

CachingAllocator::Pool CachingAllocator::pool_of(uint64_t size) {
    return size <= small_bytes_max ? Pool::small : Pool::large;
}

// ---- leasing ----

bool CachingAllocator::lease_now(const Request& request, Lease& leased) {
    if (front_.is_on() && lease_from_front(request, leased))
        return true;
    NotingLock lock(mutex_, front_);
    drain_at_most(drained_at_most);
    return try_cache(request, leased);
}

Result<void> CachingAllocator::climb(const Request& request, Lease& leased) {
    flush_front();
    const bool waits = request.terms.when_full == WhenFull::wait;
    for (Ladder ladder;; ++ladder.waited) {
        drain_all();
        {
            const WordLock lock(mutex_);
            if (try_cache(request, leased))
                return {};
        }
        if (tally_.allows(request.asked.value)) {
            collect_garbage(request, ladder);
            if (grow(request, GrowBy::segment, ladder, leased))
                return {};
            if ((release_available(request, ladder) && grow(request, GrowBy::segment, ladder, leased)) ||
                (release_cached(request.terms, ladder) && grow_or_reuse(request, ladder, leased))) {
                tally_.count_retry();
                return {};
            }
            // Less than a segment is left.
            if (grow(request, GrowBy::block, ladder, leased))
                return {};
        }
        std::optional<driver::Timepoint> pending;
        if (waits) {
            const WordLock lock(mutex_);
            pending = pending_.oldest();
        }
        if (!pending)
            return fail(out_of_memory(request, ladder));
        pending->queue->wait(pending->value);
    }
}

bool CachingAllocator::try_cache(const Request& request, Lease& leased) {
    const auto fit = find(request);
    return fit && take(request, *fit, leased);
}

uint64_t CachingAllocator::padding(Index index, Alignment alignment) const {
    const Chunk& chunk = chunks_[index];
    const uint64_t address = segments_[chunk.segment].memory.address.value + chunk.offset;
    return alignment.round_up(address) - address;
}

// The smallest free block of the queue that fits. Padding for large alignments is part of the block.
std::optional<CachingAllocator::Fit> CachingAllocator::find(const Request& request) {
    const uint64_t size = round_size(request.asked.value);
    if (size < request.asked.value)
        return std::nullopt;
    const Pool pool = pool_of(size);
    if (pool == Pool::large) {
        ++searches_;
        return find_in_set(request, pool, size);
    }
    const auto in_bins = find_in_bins(request, size);
    if (free_[static_cast<size_t>(Pool::small)].empty()) [[likely]]
        return in_bins;
    const auto in_set = find_in_set(request, pool, size);
    return in_bins && (!in_set || key_of(in_bins->chunk) < key_of(in_set->chunk)) ? in_bins : in_set;
}

std::optional<CachingAllocator::Fit> CachingAllocator::fit(Index index, uint64_t size, Alignment alignment) const {
    const uint64_t skipped = padding(index, alignment);
    const uint64_t whole = skipped == 0 ? size : Alignment{min_block_}.round_up(size + skipped);
    return whole <= chunks_[index].size ? std::optional{Fit{index, skipped, whole}} : std::nullopt;
}

// Nearly every request gets the first block that is looked at: only an alignment above 512 bytes makes one too small.
std::optional<CachingAllocator::Fit> CachingAllocator::find_in_bins(const Request& request, uint64_t size) {
    const auto known = bins_.find(request.terms.queue);
    if (known == bins_.end())
        return std::nullopt;
    const SizeBins& bins = known->second;
    for (uint64_t found = bins.smallest_from(size); found != 0; found = bins.smallest_from(found + SizeBins::unit)) {
        const SizeBins::Heap& blocks = bins.blocks_of(found);
        if (const auto first = fit(blocks[0].block, size, request.alignment)) [[likely]]
            return first;
        std::optional<Fit> best;
        for (const SizeBins::Entry& entry : blocks)
            if (const auto made = fit(entry.block, size, request.alignment);
                made && (!best || entry.address < key_of(best->chunk).address))
                best = made;
        if (best)
            return best;
    }
    return std::nullopt;
}

std::optional<CachingAllocator::Fit> CachingAllocator::find_in_set(const Request& request, Pool pool, uint64_t size) {
    FreeSet& set = set_of(pool);
    const driver::Queue* const queue = request.terms.queue;
    for (auto at = set.lower_bound(Key{queue, size, 0, 0}); at != set.end() && at->queue == queue; ++at) {
        if (!is_oversize(size) && is_oversize(at->size))
            return std::nullopt;
        if (is_oversize(size) && at->size - size >= large_segment_bytes)
            return std::nullopt;
        if (const auto found = fit(at->chunk, size, request.alignment))
            return found;
    }
    return std::nullopt;
}

bool CachingAllocator::should_split(Pool pool, uint64_t size, uint64_t remaining) const {
    if (pool == Pool::small || policy_.expandable_segments)
        return remaining >= min_block_;
    return !is_oversize(size) && remaining > small_bytes_max;
}

bool CachingAllocator::take(const Request& request, const Fit& fit, Lease& leased) {
    const Index index = fit.chunk;
    const Pool pool = segments_[chunks_[index].segment].pool;
    const bool splits = should_split(pool, fit.size, chunks_[index].size - fit.size);
    const uint64_t size = splits ? fit.size : chunks_[index].size;
    pending_.provide(tally_.live_blocks() + pending_.size() + 1);
    Index rest = none;
    if (splits)
        rest = new_chunk();
    if (!tally_.allocate(size)) {
        if (splits)
            retire_chunk(rest);
        return false;
    }
    extract_free(index);
    Chunk& chunk = chunks_[index];
    if (splits) {
        Chunk& remainder = chunks_[rest];
        remainder.offset = chunk.offset + size;
        remainder.size = chunk.size - size;
        remainder.segment = chunk.segment;
        remainder.previous = index;
        remainder.next = chunk.next;
        remainder.until = chunk.until;
        remainder.freed_at = chunk.freed_at;
        if (chunk.next != none)
            chunks_[chunk.next].previous = rest;
        else
            segments_[chunk.segment].last = rest;
        chunk.next = rest;
        chunk.size = size;
        insert_free(rest);
    }
    const DeviceAddress start = segments_[chunk.segment].memory.address.plus(chunk.offset);
    leased.block = {start.plus(fit.padding), request.asked, tag_of(request.terms.queue),
                    RegionAllocator::Block{chunk.offset, ByteCount{size}, index}};
    leased.after.clear();
    leased.is_fresh = false;
    if (!chunk.until.is_complete())
        leased.after.push_back(chunk.until);  // inline: allocates nothing
    log_allocation(request, leased);
    return true;
}

// ---- chunks ----

// With a set node of its own, so that freeing it needs no memory.
CachingAllocator::Index CachingAllocator::new_chunk() {
    if (!spare_chunks_.empty()) {
        const Index index = spare_chunks_.back();
        spare_chunks_.pop_back();
        return index;
    }
    FreeSet made;
    made.insert(Key{});
    spare_chunks_.reserve(chunks_.size() + 1 > spare_chunks_.capacity() ? 2 * chunks_.size() + 16
                                                                        : spare_chunks_.capacity());
    if (nodes_.size() == chunks_.size())
        nodes_.append();
    chunks_.append();
    nodes_[chunks_.size() - 1] = made.extract(made.begin());
    return static_cast<Index>(chunks_.size() - 1);
}

void CachingAllocator::retire_chunk(Index index) {
    assert(!nodes_[index].empty());
    chunks_[index].segment = none;
    chunks_[index].is_free = false;
    spare_chunks_.push_back(index);
}

CachingAllocator::Key CachingAllocator::key_of(Index index) const {
    const Chunk& chunk = chunks_[index];
    const Segment& segment = segments_[chunk.segment];
    return {segment.queue, chunk.size, segment.memory.address.value + chunk.offset, index};
}

void CachingAllocator::insert_free(Index index) noexcept {
    Chunk& chunk = chunks_[index];
    const Segment& segment = segments_[chunk.segment];
    chunk.is_free = true;
    if (is_split(chunk))
        inactive_split_bytes_ += chunk.size;
    if (segment.bins && SizeBins::holds(chunk.size)) [[likely]] {
        try {
            segment.bins->insert(chunk.size, {segment.memory.address.value + chunk.offset, index},
                                 [this](Index moved, Index place)
                                     POLDER_NO_THREAD_SAFETY_ANALYSIS { chunks_[moved].place = place; });
            return;
        } catch (const std::bad_alloc&) {
            // The set needs no memory.
        }
    }
    nodes_[index].value() = key_of(index);
    set_of(segment.pool).insert(std::move(nodes_[index]));
    nodes_[index] = {};
}

void CachingAllocator::extract_free(Index index) noexcept {
    Chunk& chunk = chunks_[index];
    if (is_split(chunk))
        inactive_split_bytes_ -= chunk.size;
    chunk.is_free = false;
    if (chunk.place != none) {
        const Index place = std::exchange(chunk.place, none);
        segments_[chunk.segment].bins->remove(chunk.size, place,
                                              [this](Index moved, Index to)
                                                  POLDER_NO_THREAD_SAFETY_ANALYSIS { chunks_[moved].place = to; });
        return;
    }
    nodes_[index] = set_of(segments_[chunk.segment].pool).extract(key_of(index));
    assert(!nodes_[index].empty());
}

// The right one becomes part of the left one; neither is in the set.
CachingAllocator::Index CachingAllocator::merge(Index left, Index right) noexcept {
    Chunk& kept = chunks_[left];
    const Chunk& gone = chunks_[right];
    kept.size += gone.size;
    kept.next = gone.next;
    if (gone.until.queue && (!kept.until.queue || kept.until.value < gone.until.value))
        kept.until = gone.until;
    kept.freed_at = std::max(kept.freed_at, gone.freed_at);
    if (gone.next != none)
        chunks_[gone.next].previous = left;
    else
        segments_[kept.segment].last = left;
    retire_chunk(right);
    return left;
}

void CachingAllocator::make_free(Index index) noexcept {
    chunks_[index].freed_at = searches_;
    // With many blocks, the processor's caches have neither neighbour: both are fetched at once.
    if (chunks_[index].next != none)
        __builtin_prefetch(&chunks_[chunks_[index].next]);
    if (const Index left = chunks_[index].previous; left != none && chunks_[left].is_free) {
        extract_free(left);
        index = merge(left, index);
    }
    if (const Index right = chunks_[index].next; right != none && chunks_[right].is_free) {
        extract_free(right);
        index = merge(index, right);
    }
    insert_free(index);
}

// ---- freeing ----

void CachingAllocator::free_after(const Block& block, Timepoints&& after) noexcept {
    drop_complete(after);
    POLDER_LOG(memory, "space %u: free %" PRIu64 " bytes at 0x%" PRIx64 "%s", options_.space.value, block.size.value,
               block.address.value, after.empty() ? "" : " when its uses are complete");
    if (after.empty() && front_.is_on() && is_quiet() &&
        front_.put(block, [this](std::span<const Block> spare) { take_back(spare); }))
        return;
    NotingLock lock(mutex_, front_);
    const Chunk& chunk = chunks_[block.place.node];
    const driver::Queue* const queue = segments_[chunk.segment].queue;
    assert(!chunk.is_free && tag_of(queue) == block.region && "freed twice, or not from here");
    bool is_own = queue != nullptr;
    for (const driver::Timepoint& point : after)
        is_own = is_own && point.queue == queue;
    if (after.empty() || is_own)
        return take_back(block, after);
    tally_.defer(chunk.size);
    pending_.add(block, std::move(after));
}

// The timepoints are of the block's queue.
void CachingAllocator::take_back(const Block& block, const Timepoints& after) noexcept {
    Chunk& chunk = chunks_[block.place.node];
    for (const driver::Timepoint& point : after)
        if (!chunk.until.queue || chunk.until.value < point.value)
            chunk.until = point;
    tally_.free(chunk.size);
    make_free(block.place.node);
}

// ---- the front cache ----

// Queues are objects of one heap, so no two of them are 64 GiB apart by a whole number.
uint32_t CachingAllocator::tag_of(const driver::Queue* queue) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(queue) >> 4);
}

bool CachingAllocator::lease_from_front(const Request& request, Lease& leased) {
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

void CachingAllocator::take_back(std::span<const Block> blocks) noexcept {
    const WordLock lock(mutex_);
    for (const Block& block : blocks)
        take_back(block, {});
}

void CachingAllocator::flush_front() noexcept {
    front_.flush([this](std::span<const Block> blocks) { take_back(blocks); });
}

void CachingAllocator::drain_at_most(uint32_t count) {
    pending_.drain(count, [this](const Block& block) POLDER_NO_THREAD_SAFETY_ANALYSIS {
        tally_.end_deferred(chunks_[block.place.node].size);
        make_free(block.place.node);
    });
}

void CachingAllocator::drain_all() {
    for (uint64_t before = 0, now = UINT64_MAX; now != before && now != 0;) {
        const WordLock lock(mutex_);
        before = pending_.size();
        drain_at_most(drained_at_most);
        now = pending_.size();
    }
}

void CachingAllocator::drain() {
    flush_front();
    drain_all();
}

// ---- statistics and validation ----

Allocator::Statistics CachingAllocator::statistics() const {
    Statistics sum;
    const FrontCache::Held front = front_.held();
    const WordLock lock(mutex_);
    tally_.fill(sum);
    sum.live.value -= std::min(sum.live.value, front.bytes);
    sum.live_blocks -= std::min(sum.live_blocks, front.blocks);
    sum.allocations += front.hits;
    sum.frees = sum.allocations - sum.live_blocks;
    sum.hits += front.hits;
    sum.free.value += front.bytes;
    sum.free_blocks = free_chunks() + front.blocks;
    for (const auto& [queue, bins] : bins_)
        sum.largest_free = std::max(sum.largest_free, ByteCount{bins.largest()});
    for (const FreeSet& set : free_) {
        // The last entry of each queue is its largest block.
        for (auto at = set.begin(); at != set.end();) {
            at = set.upper_bound(Key{at->queue, UINT64_MAX, UINT64_MAX, none});
            sum.largest_free = std::max(sum.largest_free, ByteCount{std::prev(at)->size});
        }
    }
    sum.inactive_split = ByteCount{inactive_split_bytes_ + front.bytes};
    sum.cached = source_->discards() ? sum.free : ByteCount{0};
    for (const Segment& segment : segments_)
        sum.regions += segment.memory.size != 0 ? 1 : 0;
    return sum;
}

uint64_t CachingAllocator::free_chunks() const {
    uint64_t count = free_[0].size() + free_[1].size();
    for (const auto& [queue, bins] : bins_)
        count += bins.size();
    return count;
}

bool CachingAllocator::is_listed(Index index) const {
    const Chunk& chunk = chunks_[index];
    const Segment& segment = segments_[chunk.segment];
    if (chunk.place == none)
        return free_[static_cast<size_t>(segment.pool)].contains(key_of(index));
    return segment.bins && segment.bins->has(chunk.size, chunk.place, {key_of(index).address, index});
}

// Chunks tile their segments, no two free ones touch, and the bins and sets hold exactly the free ones.
bool CachingAllocator::validate() const {
    const WordLock lock(mutex_);
    uint64_t reserved = 0, used = 0, listed = 0, inactive = 0;
    for (size_t number = 0; number < segments_.size(); ++number) {
        const Segment& segment = segments_[number];
        reserved += segment.memory.size;
        uint64_t offset = 0;
        Index previous = none;
        for (Index index = segment.first; index != none; previous = index, index = chunks_[index].next) {
            const Chunk& chunk = chunks_[index];
            if (chunk.segment != number || chunk.offset != offset || chunk.size == 0 || chunk.previous != previous ||
                (previous != none && chunk.is_free && chunks_[previous].is_free) ||
                (chunk.until.queue && chunk.until.queue != segment.queue) ||
                nodes_[index].empty() != (chunk.is_free && chunk.place == none) ||
                (!chunk.is_free && chunk.place != none))
                return false;
            if (chunk.is_free && !is_listed(index))
                return false;
            listed += chunk.is_free ? 1 : 0;
            inactive += chunk.is_free && is_split(chunk) ? chunk.size : 0;
            used += chunk.is_free ? 0 : chunk.size;
            offset += chunk.size;
        }
        if (offset != segment.memory.size || segment.last != previous)
            return false;
    }
    return reserved == tally_.reserved() && used == tally_.live() + tally_.deferred() && listed == free_chunks() &&
           inactive == inactive_split_bytes_ && pending_.validate();
}

}  // namespace polder::memory
