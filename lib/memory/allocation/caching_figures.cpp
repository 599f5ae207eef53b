// Statistics of the caching allocator, and the check of its invariants.
#include <memory/caching_allocator.h>

#include <algorithm>
#include <iterator>

namespace polder::memory {

Allocator::Statistics CachingAllocator::statistics() const {
    Statistics sum;
    const FrontCache::Held front = front_.held();
    const BiasedLock lock(mutex_);
    tally_.fill(sum);
    sum.live.value -= std::min(sum.live.value, front.bytes);
    sum.live_blocks -= std::min(sum.live_blocks, front.blocks);
    sum.allocations += front.hits;
    sum.frees = sum.allocations - sum.live_blocks;
    sum.hits += front.hits;
    sum.free.value += front.bytes;
    sum.free_blocks = free_chunks() + front.blocks;
    for (const auto& bins : bins_)
        sum.largest_free = std::max(sum.largest_free, ByteCount{bins->largest()});
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
    for (const auto& bins : bins_)
        count += bins->size();
    return count;
}

bool CachingAllocator::is_listed(Index index) const {
    const Chunk& chunk = chunks_[index];
    if (chunk.state != Chunk::State::in_bin)
        return free_[static_cast<size_t>(segments_[chunk.segment].pool)].contains(key_of(index));
    return chunk.bins != no_bins && bins_[chunk.bins]->has(chunk.size, {chunk.address, index});
}

// Chunks tile their segments, no two free chunks of a segment are neighbours, and the bins and sets contain exactly the free chunks.
bool CachingAllocator::validate() const {
    const BiasedLock lock(mutex_);
    uint64_t reserved = 0, used = 0, listed = 0, inactive = 0;
    for (size_t number = 0; number < segments_.size(); ++number) {
        const Segment& segment = segments_[number];
        reserved += segment.memory.size;
        uint64_t offset = 0;
        Index previous = none;
        for (Index index = segment.first; index != none; previous = index, index = chunks_[index].next) {
            const Chunk& chunk = chunks_[index];
            if (chunk.segment != number || chunk.address != segment.memory.address.value + offset || chunk.size == 0 ||
                chunk.previous != previous || chunk.bins != segment.bins ||
                (previous != none && chunk.is_free() && chunks_[previous].is_free()) ||
                (chunk.has_until && times_[index].until.queue != segment.queue) ||
                nodes_[index].empty() != (chunk.state == Chunk::State::in_set))
                return false;
            if (chunk.is_free() && !is_listed(index))
                return false;
            listed += chunk.is_free() ? 1 : 0;
            inactive += chunk.is_free() && is_split(chunk) ? chunk.size : 0;
            used += chunk.is_free() ? 0 : chunk.size;
            offset += chunk.size;
        }
        if (offset != segment.memory.size || segment.last != previous)
            return false;
    }
    return reserved == tally_.reserved() && used == tally_.live() + tally_.deferred() && listed == free_chunks() &&
           inactive == inactive_split_bytes_ && pending_.validate() &&
           std::ranges::all_of(bins_, [](const auto& bins) { return bins->validate(); });
}

}  // namespace polder::memory
