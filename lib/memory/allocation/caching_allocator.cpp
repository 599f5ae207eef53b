// Blocks of the caching allocator: finding, splitting, freeing, merging. Reserving and releasing segments is in
// caching_segments.cpp; the front cache is in caching_front.cpp; statistics and the check of all invariants are in caching_figures.cpp.
#include <base/log.h>
#include <base/sizes.h>
#include <memory/caching_allocator.h>

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <new>
#include <utility>

namespace polder::memory {
namespace {

// PyTorch's constants.
constexpr uint64_t block_bytes_min = 512;
constexpr uint64_t small_bytes_max = MiB;
constexpr uint64_t small_segment_bytes = 2 * MiB;
constexpr uint64_t large_segment_bytes = 20 * MiB;
constexpr uint64_t own_segment_bytes_min = 10 * MiB;
constexpr uint64_t segment_rounding = 2 * MiB;

}  // namespace

CachingAllocator::CachingAllocator(std::unique_ptr<RegionSource> source, const AllocationPolicy& policy,
                                   const AllocatorOptions& options)
    : TurnAllocator(std::move(source), options, Tally::Writers::one_at_a_time), policy_(policy),
      has_divisions_(std::ranges::any_of(policy.roundup_power2_divisions, [](uint32_t steps) { return steps > 1; })),
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
    const uint64_t divided = has_divisions_ ? policy_.round_to_division(bytes) : bytes;
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

[[gnu::flatten]] bool CachingAllocator::lease_now(const Request& request, Lease& leased) {
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
        bool is_retry = ladder.waited != 0;
        if (try_steps(request, ladder, is_retry, leased)) {
            if (is_retry)
                tally_.count_retry();
            return {};
        }
        std::optional<driver::Timepoint> pending;
        if (waits) {
            const BiasedLock lock(mutex_);
            pending = pending_.oldest();
        }
        if (!pending)
            return fail(out_of_memory(request, ladder));
        pending->queue->wait(pending->value);
    }
}

// PyTorch's steps. Notes when memory was given back or waited for.
bool CachingAllocator::try_steps(const Request& request, Ladder& ladder, bool& is_retry, Lease& leased) {
    {
        const BiasedLock lock(mutex_);
        if (try_cache(request, leased))
            return true;
    }
    if (!tally_.allows(request.asked.value))
        return false;
    collect_garbage(request, ladder);
    if (grow(request, GrowBy::segment, ladder, leased))
        return true;
    if (release_available(request, ladder)) {
        is_retry = true;
        if (grow(request, GrowBy::segment, ladder, leased))
            return true;
    }
    if (release_cached(request.terms, ladder)) {
        is_retry = true;
        if (grow_or_reuse(request, ladder, leased))
            return true;
    }
    // The source has less than a segment left: reserve only the block.
    return grow(request, GrowBy::block, ladder, leased);
}

// Nearly every small request gets the first block that is examined. Only with an alignment above 512 bytes may it be too small. All that the
// decisions and the bins need is in the bins: the block's description is fetched meanwhile.
bool CachingAllocator::try_cache(const Request& request, Lease& leased) {
    const uint64_t size = round_size(request.asked.value);
    if (pool_of(size) == Pool::small && free_[static_cast<size_t>(Pool::small)].empty()) [[likely]] {
        const BinsNumber number = bins_of(request.terms.queue);
        if (number == no_bins)
            return false;
        SizeBins& bins = *bins_[number];
        const uint64_t found = bins.smallest_from(size);
        if (found == 0)
            return false;
        const SizeBins::Entry lowest = bins.lowest(found);
        if (const Fit first = fit(lowest, size, request.alignment); first.size <= found) [[likely]] {
            bins.prefetch(found - first.size);  // where the rest will be
            return take_from(request, first, Free{lowest.address, found, Pool::small, &bins}, leased);
        }
    }
    const Fit any = find(request);
    return any.chunk != none && take(request, any, leased);
}

// The smallest free block of the queue that fits. Padding for large alignments is part of the block.
[[gnu::noinline]] CachingAllocator::Fit CachingAllocator::find(const Request& request) {
    const uint64_t size = round_size(request.asked.value);
    if (size < request.asked.value)
        return {};
    const Pool pool = pool_of(size);
    if (pool == Pool::large) {
        ++searches_;
        return find_in_set(request, pool, size);
    }
    const Fit in_bins = find_in_bins(request, size);
    if (free_[static_cast<size_t>(Pool::small)].empty()) [[likely]]
        return in_bins;
    const Fit in_set = find_in_set(request, pool, size);
    if (in_bins.chunk == none || in_set.chunk == none)
        return in_bins.chunk != none ? in_bins : in_set;
    return key_of(in_bins.chunk) < key_of(in_set.chunk) ? in_bins : in_set;
}

// How a request for `size` bytes would fit into a free block.
CachingAllocator::Fit CachingAllocator::fit(const SizeBins::Entry& entry, uint64_t size, Alignment alignment) const {
    const uint64_t skipped = alignment.round_up(entry.address) - entry.address;
    return {entry.block, skipped, skipped == 0 ? size : Alignment{min_block_}.round_up(size + skipped)};
}

CachingAllocator::Fit CachingAllocator::find_in_bins(const Request& request, uint64_t size) {
    const BinsNumber number = bins_of(request.terms.queue);
    if (number == no_bins)
        return {};
    const SizeBins& bins = *bins_[number];
    for (uint64_t found = bins.smallest_from(size); found != 0; found = bins.smallest_from(found + SizeBins::unit)) {
        const auto fits = [&](const SizeBins::Entry& entry) {
            return fit(entry, size, request.alignment).size <= found;
        };
        if (const auto lowest = bins.lowest_of(found, fits))
            return fit(*lowest, size, request.alignment);
    }
    return {};
}

[[gnu::noinline]] CachingAllocator::Fit CachingAllocator::find_in_set(const Request& request, Pool pool,
                                                                      uint64_t size) {
    FreeSet& set = set_of(pool);
    const driver::Queue* const queue = request.terms.queue;
    for (auto at = set.lower_bound(Key{queue, size, 0, 0}); at != set.end() && at->queue == queue; ++at) {
        if (!is_oversize(size) && is_oversize(at->size))
            return {};
        if (is_oversize(size) && at->size - size >= large_segment_bytes)
            return {};
        if (const Fit found = fit({at->address, at->chunk}, size, request.alignment); found.size <= at->size)
            return found;
    }
    return {};
}

bool CachingAllocator::should_split(Pool pool, uint64_t size, uint64_t remaining) const {
    if (pool == Pool::small || policy_.expandable_segments)
        return remaining >= min_block_;
    return !is_oversize(size) && remaining > small_bytes_max;
}

[[gnu::noinline]] bool CachingAllocator::take(const Request& request, const Fit& fit, Lease& leased) {
    const Chunk& chunk = chunks_[fit.chunk];
    return take_from(request, fit, Free{chunk.address, chunk.size, pool_of_chunk(chunk), nullptr}, leased);
}

inline bool CachingAllocator::take_from(const Request& request, const Fit& fit, const Free& free, Lease& leased) {
    const Index index = fit.chunk;
    const bool splits = should_split(free.pool, fit.size, free.size - fit.size);
    const uint64_t size = splits ? fit.size : free.size;
    Index rest = none;
    if (splits)
        rest = new_chunk();
    if (!tally_.allocate(size)) {
        if (splits)
            retire_chunk(rest);
        return false;
    }
    Chunk& chunk = chunks_[index];
    bool is_listed = false;
    if (free.bins) {
        __builtin_prefetch(&chunk, 1);
        free.bins->remove_lowest(free.size);
        if (splits)
            is_listed = list(*free.bins, free.size - size, {free.address + size, rest});
        note_used(chunk, free.size);
    } else {
        extract_free(chunk, index);
    }
    if (splits) {
        Chunk& remainder = chunks_[rest];
        remainder.address = free.address + size;
        remainder.size = free.size - size;
        remainder.segment = chunk.segment;
        remainder.bins = chunk.bins;
        remainder.previous = index;
        remainder.next = chunk.next;
        if (chunk.has_until) [[unlikely]]
            wait_until(rest, times_[index].until);
        if (free.pool == Pool::large)
            times_[rest].freed_at = times_[index].freed_at;
        if (chunk.next != none)
            chunks_[chunk.next].previous = rest;
        else
            segments_[chunk.segment].last = rest;
        chunk.next = rest;
        chunk.size = size;
        if (!is_listed) {
            insert_free(remainder, rest);
        } else {
            remainder.state = Chunk::State::in_bin;
            inactive_split_bytes_ += free.size - size;
        }
    }
    leased.block = {DeviceAddress{free.address + fit.padding}, request.asked, tag_of(request.terms.queue),
                    RegionAllocator::Block{reinterpret_cast<uintptr_t>(&chunk), ByteCount{size}, index}};
    leased.after.clear();
    leased.is_fresh = false;
    if (chunk.has_until) [[unlikely]]
        if (const driver::Timepoint before = times_[index].until; !before.is_complete())
            leased.after.push_back(before);  // inline: allocates nothing
    log_allocation(request, leased);
    return true;
}

// ---- chunks ----

// Makes a chunk, together with a node of the set of free blocks, so that freeing the chunk needs no memory.
CachingAllocator::Index CachingAllocator::new_chunk() {
    if (spare_chunks_.empty()) [[unlikely]]
        return make_chunk();
    const Index index = spare_chunks_.back();
    spare_chunks_.pop_back();
    return index;
}

[[gnu::noinline]] CachingAllocator::Index CachingAllocator::make_chunk() {
    FreeSet made;
    made.insert(Key{});
    spare_chunks_.reserve(chunks_.size() + 1 > spare_chunks_.capacity() ? 2 * chunks_.size() + 16
                                                                        : spare_chunks_.capacity());
    pending_.provide(chunks_.size() + 1);  // each chunk may be pending
    if (nodes_.size() == chunks_.size())
        nodes_.append();
    if (times_.size() == chunks_.size())
        times_.append();
    chunks_.append();
    nodes_[chunks_.size() - 1] = made.extract(made.begin());
    return static_cast<Index>(chunks_.size() - 1);
}

inline void CachingAllocator::retire_chunk(Chunk& chunk, Index index) {
    assert(!nodes_[index].empty());
    chunk.segment = none;
    chunk.bins = no_bins;
    chunk.state = Chunk::State::used;
    chunk.has_until = false;
    spare_chunks_.push_back(index);
}

void CachingAllocator::retire_chunk(Index index) { retire_chunk(chunks_[index], index); }

CachingAllocator::Key CachingAllocator::key_of(Index index) const {
    const Chunk& chunk = chunks_[index];
    return {segments_[chunk.segment].queue, chunk.size, chunk.address, index};
}

CachingAllocator::BinsNumber CachingAllocator::bins_of(const driver::Queue* queue) const {
    if (last_bins_ != no_bins && last_queue_ == queue) [[likely]]
        return last_bins_;
    const auto known = bins_by_queue_.find(queue);
    if (known == bins_by_queue_.end())
        return no_bins;
    last_queue_ = queue;
    return last_bins_ = known->second;
}

CachingAllocator::BinsNumber CachingAllocator::make_bins_of(const driver::Queue* queue) {
    if (const BinsNumber known = bins_of(queue); known != no_bins || bins_.size() == no_bins)
        return known;
    bins_.push_back(std::make_unique<SizeBins>());
    const auto number = static_cast<BinsNumber>(bins_.size() - 1);
    bins_by_queue_.emplace(queue, number);
    return number;
}

inline void CachingAllocator::insert_free(Chunk& chunk, Index index) noexcept {
    if (is_split(chunk))
        inactive_split_bytes_ += chunk.size;
    if (chunk.bins != no_bins && SizeBins::holds(chunk.size) &&
        list(*bins_[chunk.bins], chunk.size, {chunk.address, index})) [[likely]]
        chunk.state = Chunk::State::in_bin;
    else
        insert_in_set(chunk, index);
}

// False when the block must be in the set instead.
inline bool CachingAllocator::list(SizeBins& bins, uint64_t size, const SizeBins::Entry& entry) noexcept {
    try {
        return bins.insert(size, entry);
    } catch (const std::bad_alloc&) {
        return false;  // inserting an existing node into the set needs no memory
    }
}

void CachingAllocator::insert_free(Index index) noexcept { insert_free(chunks_[index], index); }

[[gnu::noinline]] void CachingAllocator::insert_in_set(Chunk& chunk, Index index) noexcept {
    chunk.state = Chunk::State::in_set;
    nodes_[index].value() = key_of(index);
    set_of(segments_[chunk.segment].pool).insert(std::move(nodes_[index]));
    nodes_[index] = {};
}

inline void CachingAllocator::note_used(Chunk& chunk, uint64_t size) noexcept {
    if (is_split(chunk))
        inactive_split_bytes_ -= size;
    chunk.state = Chunk::State::used;
}

inline void CachingAllocator::extract_free(Chunk& chunk, Index index) noexcept {
    const bool is_in_bin = chunk.state == Chunk::State::in_bin;
    note_used(chunk, chunk.size);
    if (is_in_bin) [[likely]]
        return bins_[chunk.bins]->remove(chunk.size, chunk.address);
    extract_from_set(chunk, index);
}

void CachingAllocator::extract_free(Index index) noexcept { extract_free(chunks_[index], index); }

[[gnu::noinline]] void CachingAllocator::extract_from_set(const Chunk& chunk, Index index) noexcept {
    nodes_[index] = set_of(segments_[chunk.segment].pool).extract(key_of(index));
    assert(!nodes_[index].empty());
}

// The right chunk becomes part of the left one. Neither is in the set or in a bin.
inline void CachingAllocator::merge(Chunk& kept, Index left, Chunk& gone, Index right) noexcept {
    kept.size += gone.size;
    kept.next = gone.next;
    if (gone.has_until) [[unlikely]]
        wait_until(left, times_[right].until);
    if (pool_of_chunk(kept) == Pool::large)
        times_[left].freed_at = std::max(times_[left].freed_at, times_[right].freed_at);
    if (gone.next != none)
        chunks_[gone.next].previous = left;
    else
        segments_[kept.segment].last = left;
    retire_chunk(gone, right);
}

// Makes the chunk wait for `until`, in addition to the timepoint that it waits for already.
void CachingAllocator::wait_until(Index index, driver::Timepoint until) {
    Chunk& chunk = chunks_[index];
    if (!chunk.has_until || times_[index].until.value < until.value)
        times_[index].until = until;
    chunk.has_until = true;
}

void CachingAllocator::make_free(Index index) noexcept { make_free(chunks_[index], index); }

inline void CachingAllocator::make_free(Chunk& freed, Index index) noexcept {
    Chunk* chunk = &freed;
    if (pool_of_chunk(*chunk) == Pool::large)
        times_[index].freed_at = searches_;
    const Index left = chunk->previous;
    const Index right = chunk->next;
    Chunk* const before = left != none ? &chunks_[left] : nullptr;
    Chunk* const after = right != none ? &chunks_[right] : nullptr;
    const bool merges_left = before && before->is_free();
    const bool merges_right = after && after->is_free();
    // With many blocks, the processor's caches do not have the bin where the block will be: it is fetched meanwhile.
    if (chunk->bins != no_bins) [[likely]]
        bins_[chunk->bins]->prefetch(chunk->size + (merges_left ? before->size : 0) + (merges_right ? after->size : 0));
    if (merges_left) {
        extract_free(*before, left);
        merge(*before, left, *chunk, index);
        chunk = before;
        index = left;
    }
    if (merges_right) {
        extract_free(*after, right);
        merge(*chunk, index, *after, right);
    }
    insert_free(*chunk, index);
}

// ---- freeing ----

[[gnu::flatten]] void CachingAllocator::free_after(const Block& block, Timepoints&& after) noexcept {
    drop_complete(after);
    POLDER_LOG(memory, "space %u: free %" PRIu64 " bytes at 0x%" PRIx64 "%s", options_.space.value, block.size.value,
               block.address.value, after.empty() ? "" : " when its uses are complete");
    if (after.empty() && front_.is_on() && free_to_front(block))
        return;
    // When there are many blocks, the processor's caches contain neither the chunk nor its neighbours, which mostly lie beside it in the
    // array. They are fetched while this thread takes the lock.
    auto* const here = reinterpret_cast<Chunk*>(block.place.offset);
    __builtin_prefetch(here - 1);
    __builtin_prefetch(here + 1);
    NotingLock lock(mutex_, front_);
    assert(here == &chunks_[block.place.node] && !here->is_free() &&
           tag_of(segments_[here->segment].queue) == block.region && "freed twice, or not from here");
    if (after.empty()) [[likely]] {
        tally_.free(block.place.size.value);
        return make_free(*here, block.place.node);
    }
    free_after_use(block, std::move(after));
}

[[gnu::noinline]] void CachingAllocator::free_after_use(const Block& block, Timepoints&& after) noexcept {
    const driver::Queue* const queue = segments_[chunks_[block.place.node].segment].queue;
    bool is_own = queue != nullptr;
    for (const driver::Timepoint& point : after)
        is_own = is_own && point.queue == queue;
    if (is_own)
        return take_back(block, after);
    tally_.defer(block.place.size.value);
    pending_.add(block, std::move(after));
}

// Frees a block whose timepoints are all on the block's own queue.
void CachingAllocator::take_back(const Block& block, const Timepoints& after) noexcept {
    for (const driver::Timepoint& point : after)
        wait_until(block.place.node, point);
    tally_.free(block.place.size.value);
    make_free(block.place.node);
}

uint32_t CachingAllocator::drain_at_most(uint32_t count) {
    return pending_.drain(count, [this](const Block& block) POLDER_NO_THREAD_SAFETY_ANALYSIS {
        tally_.end_deferred(chunks_[block.place.node].size);
        make_free(block.place.node);
    });
}

}  // namespace polder::memory
