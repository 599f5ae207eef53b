// Segments of the caching allocator: reserving and growing them, and the steps that release them to the source. Every
// call to the source is made without the allocator's lock, by the thread that has the turn.
#include <base/log.h>
#include <base/scope_exit.h>
#include <base/sizes.h>
#include <memory/caching_allocator.h>

#include <algorithm>
#include <cinttypes>

namespace polder::memory {
namespace {

constexpr uint64_t small_growth_bytes = 2 * MiB;
constexpr uint64_t large_growth_bytes = 20 * MiB;

}  // namespace

// ---- growing ----

bool CachingAllocator::grow(const Request& request, GrowBy by, Ladder& ladder, Lease& leased) {
    // When the source has no addresses for a segment that grows, a segment of fixed size is made.
    if (policy_.expandable_segments && source_->growable() && grow_in_place(request, ladder, leased))
        return true;
    const uint64_t rounded = round_size(request.asked.value);
    const uint64_t bytes = by == GrowBy::segment ? segment_size(rounded) : rounded;
    if (grow_by(bytes, request, ladder, leased))
        return true;
    // No address in the segment had the alignment, or the source had no memory. In the first case, a larger segment helps.
    const uint64_t with_padding = bytes + request.alignment.value;
    return ladder.source_said.empty() && with_padding > bytes && grow_by(with_padding, request, ladder, leased);
}

bool CachingAllocator::grow_by(uint64_t bytes, const Request& request, Ladder& ladder, Lease& leased) {
    ladder.source_said.clear();
    const auto memory = reserve(ByteCount{bytes}, ladder);
    if (!memory)
        return false;
    RemovedList removed;
    bool done = false;
    bool is_added = false;
    const ScopeExit undo{[&]() noexcept {
        if (is_added)
            return;
        source_->release(*memory);
        tally_.release(memory->size);
    }};
    {
        const BiasedLock lock(mutex_);
        // The source may return more than requested. A rest that is smaller than a block is not used.
        Segment made;
        made.memory = *memory;
        made.queue = request.terms.queue;
        made.pool = pool_of(round_size(request.asked.value));
        const Index segment = add_segment(made);
        is_added = true;
        done = try_cache(request, leased);
        if (!done && tally_.allows(request.asked.value))
            remove_segment(segment, removed);
    }
    give_back(removed);
    return done;
}

// Tries the cache again, because commands that the request has waited for may have left free blocks there, then the source.
bool CachingAllocator::grow_or_reuse(const Request& request, Ladder& ladder, Lease& leased) {
    {
        const BiasedLock lock(mutex_);
        if (try_cache(request, leased))
            return true;
    }
    return grow(request, GrowBy::segment, ladder, leased);
}

CachingAllocator::Index CachingAllocator::find_growing(const driver::Queue* queue, Pool pool) const {
    for (Index index = 0; index < segments_.size(); ++index) {
        const Segment& segment = segments_[index];
        if (segment.reserved_addresses != 0 && segment.queue == queue && segment.pool == pool)
            return index;
    }
    return none;
}

// expandable_segments: adds memory at the end of the queue's segment.
bool CachingAllocator::grow_in_place(const Request& request, Ladder& ladder, Lease& leased) {
    GrowableRegions& regions = *source_->growable();
    const uint64_t size =
        round_size(request.asked.value) + (request.alignment.value > min_block_ ? request.alignment.value : 0);
    const Pool pool = pool_of(round_size(request.asked.value));
    const Alignment step{std::max(regions.page().value, small_growth_bytes)};
    Index index = none;
    {
        const BiasedLock lock(mutex_);
        index = find_growing(request.terms.queue, pool);
    }
    if (index == none) {
        const uint64_t all = tally_.reserved() + source_->available().value;
        const uint64_t addresses = step.round_up(2 * all + step.value);
        const auto address = regions.reserve_addresses(ByteCount{addresses});
        if (!address) {
            ladder.source_said = address.error().detail();
            return false;
        }
        const ScopeExit undo{[&]() noexcept {
            if (index == none)
                regions.release_addresses({*address, addresses});
        }};
        const BiasedLock lock(mutex_);
        index = add_segment({{*address, 0}, request.terms.queue, no_bins, pool, none, none, addresses});
    }
    driver::Memory added;
    {
        const BiasedLock lock(mutex_);
        const Segment& segment = segments_[index];
        const uint64_t tail = segment.last != none && chunks_[segment.last].is_free() ? chunks_[segment.last].size : 0;
        uint64_t bytes = step.round_up(size - std::min(size, tail));
        if (pool == Pool::large)
            bytes = (bytes + large_growth_bytes - 1) / large_growth_bytes * large_growth_bytes;
        bytes = std::min(bytes, segment.reserved_addresses - segment.memory.size);
        added = {segment.memory.address.plus(segment.memory.size), bytes};
        if (bytes == 0 || bytes + tail < size)
            return false;
    }
    for (const uint64_t bytes : {added.size, step.round_up(size)}) {
        added.size = std::min(added.size, bytes);
        const Result<void> committed = regions.commit(added);
        if (!committed) {
            ladder.source_said = committed.error().detail();
            continue;
        }
        tally_.reserve(added.size);
        bool is_added = false;
        const ScopeExit undo{[&]() noexcept {
            if (is_added)
                return;
            regions.decommit(added);
            tally_.release(added.size);
        }};
        const BiasedLock lock(mutex_);
        append_free(index, added.size);
        is_added = true;
        return try_cache(request, leased);
    }
    return false;
}

CachingAllocator::Index CachingAllocator::add_segment(const Segment& made) {
    const auto is_unused = [](const Segment& known) { return known.memory.size == 0 && known.reserved_addresses == 0; };
    const auto hole = unused_segments_ == 0 ? segments_.end() : std::ranges::find_if(segments_, is_unused);
    const auto index = static_cast<Index>(hole - segments_.begin());
    const BinsNumber bins = made.pool == Pool::small ? make_bins_of(made.queue) : no_bins;
    if (made.memory.size != 0)
        retire_chunk(new_chunk());  // so that append_free below finds one
    if (hole == segments_.end()) {
        segments_.push_back(made);
    } else {
        *hole = made;
        --unused_segments_;
    }
    segments_[index].bins = bins;
    if (const uint64_t bytes = std::exchange(segments_[index].memory.size, 0))
        append_free(index, bytes);
    return index;
}

void CachingAllocator::append_free(Index segment, uint64_t bytes) {
    const Index index = new_chunk();
    Segment& grown = segments_[segment];
    Chunk& chunk = chunks_[index];
    chunk.address = grown.memory.address.value + grown.memory.size;
    chunk.size = bytes;
    chunk.segment = segment;
    chunk.bins = grown.bins;
    chunk.previous = grown.last;
    chunk.next = none;
    if (grown.last != none)
        chunks_[grown.last].next = index;
    else
        grown.first = index;
    // The segment's last chunk, when it is free and alone, becomes a split block now, because it gets a neighbour.
    if (grown.last != none && chunks_[grown.last].is_free() && chunks_[grown.last].previous == none)
        inactive_split_bytes_ += chunks_[grown.last].size;
    grown.last = index;
    grown.memory.size += bytes;
    make_free(index);
}

// ---- releasing memory to the source ----

bool CachingAllocator::may_release(Index index) const {
    return !is_split(chunks_[index]) && until(index).is_complete();
}

void CachingAllocator::remove_segment(Index segment, RemovedList& removed) {
    Segment& gone = segments_[segment];
    removed.push_back({gone.memory, gone.reserved_addresses != 0});
    extract_free(gone.first);
    retire_chunk(gone.first);
    gone.first = gone.last = none;
    gone.memory.size = 0;
    if (gone.reserved_addresses == 0) {
        gone = {};
        ++unused_segments_;
    }
}

// Removes the memory of free whole pages at the end of a segment that grows.
void CachingAllocator::shrink_segment(Index segment, RemovedList& removed) {
    Segment& shrunk = segments_[segment];
    if (shrunk.last == none || !chunks_[shrunk.last].is_free() || !until(shrunk.last).is_complete())
        return;
    const Index index = shrunk.last;
    if (!is_split(chunks_[index]))
        return remove_segment(segment, removed);
    const uint64_t begin = chunks_[index].address - shrunk.memory.address.value;  // in the segment
    const uint64_t kept = source_->growable()->page().round_up(begin);
    if (kept >= shrunk.memory.size)
        return;
    removed.push_back({{shrunk.memory.address.plus(kept), shrunk.memory.size - kept}, true});
    extract_free(index);
    Chunk& chunk = chunks_[index];
    shrunk.memory.size = kept;
    chunk.size = kept - begin;
    if (chunk.size != 0)
        return insert_free(index);
    shrunk.last = chunk.previous;
    chunks_[shrunk.last].next = none;
    retire_chunk(index);
}

uint64_t CachingAllocator::give_back(RemovedList& removed) {
    uint64_t bytes = 0;
    for (const Removed& part : removed) {
        POLDER_LOG(memory, "space %u: give back a region of %" PRIu64 " bytes at 0x%" PRIx64, options_.space.value,
                   part.memory.size, part.memory.address.value);
        if (part.is_part)
            source_->growable()->decommit(part.memory);
        else
            source_->release(part.memory);
        tally_.release(part.memory.size);
        bytes += part.memory.size;
    }
    removed.clear();
    return bytes;
}

// Releases unsplit blocks of the large pool that have been free for longer than the average, until the use is below the
// threshold.
void CachingAllocator::collect_garbage(const Request& request, Ladder& ladder) {
    if (policy_.garbage_collection_threshold <= 0)
        return;
    const uint64_t reserved = tally_.reserved();
    const uint64_t allowed = std::min(tally_.limit(), reserved + source_->available().value);
    const auto threshold = static_cast<uint64_t>(policy_.garbage_collection_threshold * static_cast<double>(allowed));
    const uint64_t needed = segment_size(round_size(request.asked.value));
    if (reserved + needed <= threshold)
        return;
    const uint64_t target = reserved + needed - threshold;
    RemovedList removed;
    const ScopeExit rest{[&]() noexcept { give_back(removed); }};  // when host memory runs out halfway
    {
        const BiasedLock lock(mutex_);
        std::vector<Index> unused;
        uint64_t age_sum = 0;
        for (const Key& key : set_of(Pool::large)) {
            if (!may_release(key.chunk))
                continue;
            unused.push_back(key.chunk);
            age_sum += searches_ - times_[key.chunk].freed_at;
        }
        uint64_t reclaimed = 0;
        for (bool freed = true; freed && reclaimed < target && !unused.empty();) {
            const uint64_t average = age_sum / unused.size();
            freed = false;
            for (size_t i = 0; i < unused.size() && reclaimed < target;) {
                const Chunk& chunk = chunks_[unused[i]];
                const uint64_t age = searches_ - times_[unused[i]].freed_at;
                if (age < average) {
                    ++i;
                    continue;
                }
                age_sum -= age;
                reclaimed += chunk.size;
                remove_segment(chunk.segment, removed);
                unused[i] = unused.back();
                unused.pop_back();
                freed = true;
            }
        }
    }
    ladder.released_bytes += give_back(removed);
}

// With max_split_size: releases one cached block that is large enough, or the largest ones until their sum is large enough.
bool CachingAllocator::release_available(const Request& request, Ladder& ladder) {
    if (policy_.max_split_size.value == AllocationPolicy::unlimited)
        return false;
    const uint64_t size = std::max(round_size(request.asked.value), policy_.max_split_size.value);
    RemovedList removed;
    const ScopeExit rest{[&]() noexcept { give_back(removed); }};  // when host memory runs out halfway
    bool enough = false;
    {
        const BiasedLock lock(mutex_);
        FreeSet& set = set_of(Pool::large);
        const driver::Queue* const queue = request.terms.queue;
        auto at = set.lower_bound(Key{queue, size, 0, 0});
        while (at != set.end() && at->queue == queue && !may_release(at->chunk))
            ++at;
        if (at != set.end() && at->queue == queue) {
            remove_segment(chunks_[at->chunk].segment, removed);
            enough = true;
        }
        uint64_t released = 0;
        while (!enough) {
            at = set.lower_bound(Key{queue, size, 0, 0});
            do {
                at = at == set.begin() ? set.end() : std::prev(at);
            } while (at != set.end() && at->queue == queue && is_oversize(at->size) && !may_release(at->chunk));
            if (at == set.end() || at->queue != queue || !is_oversize(at->size))
                break;
            released += at->size;
            remove_segment(chunks_[at->chunk].segment, removed);
            enough = released >= size;
        }
    }
    ladder.released_bytes += give_back(removed);
    return enough;
}

// Releases all unsplit blocks. If the request may wait, waits for commands in flight that use cached blocks.
bool CachingAllocator::release_cached(const LeaseTerms& terms, Ladder& ladder) {
    bool changed = false;
    if (terms.when_full == WhenFull::wait)
        while (wait_for_cached())
            changed = true;
    const uint64_t bytes = release_unused();
    ladder.released_bytes += bytes;
    return changed || bytes != 0;
}

// Waits for one pending block, or one cached block that is not ready. False: there is none.
bool CachingAllocator::wait_for_cached() {
    std::optional<driver::Timepoint> last;
    {
        const BiasedLock lock(mutex_);
        last = pending_.oldest();
        for (const Segment& segment : segments_)
            for (Index index = segment.pool == Pool::small ? segment.first : none; !last && index != none;
                 index = chunks_[index].next)
                if (chunks_[index].is_free() && !until(index).is_complete())
                    last = until(index);
        for (const FreeSet& set : free_)
            for (auto at = set.begin(); !last && at != set.end(); ++at)
                if (!until(at->chunk).is_complete())
                    last = until(at->chunk);
    }
    if (!last)
        return false;
    last->queue->wait(last->value);
    drain_all();
    return true;
}

uint64_t CachingAllocator::release_unused() {
    RemovedList removed;
    const ScopeExit rest{[&]() noexcept { give_back(removed); }};  // when host memory runs out halfway
    {
        const BiasedLock lock(mutex_);
        for (Index index = 0; index < segments_.size(); ++index) {
            const Segment& segment = segments_[index];
            if (segment.first == none)
                continue;
            if (segment.reserved_addresses != 0)
                shrink_segment(index, removed);
            else if (chunks_[segment.first].is_free() && may_release(segment.first))
                remove_segment(index, removed);
        }
    }
    return give_back(removed);
}

void CachingAllocator::trim() {
    drain();
    const Housekeeping turn{*this};
    release_unused();
}

}  // namespace polder::memory
