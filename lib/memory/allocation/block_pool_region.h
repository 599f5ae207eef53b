// One region of a BlockPool: contiguous memory of the source, and the state of its free parts. Guarded by the pool's lock.
#pragma once

#include "range_set.h"

#include <memory/block_pool.h>

#include <algorithm>
#include <vector>

namespace polder::memory {

// Blocks from this size on are spread in pages: what stays free before a block is less than an eighth of it. The step has 14 lines of a cache,
// and nine successive multiples of it are at least 384 bytes apart modulo a page.
inline constexpr uint64_t spread_bytes_min = 8 * RegionAllocator::page_bytes;
inline constexpr uint64_t spread_step = 896;

struct BlockPool::Region {
    // Free bytes that a command in flight still uses.
    struct Unready {
        ByteRange range;
        driver::Timepoint until;
    };

    Region(driver::Memory reserved, Alignment granularity, const RegionAllocator::Spread& spread)
        : memory(reserved), allocator({reserved.address, ByteCount{reserved.size}, granularity, spread}) {}

    [[nodiscard]] uint64_t cached() const { return allocator.free_bytes().value - clean.size_bytes(); }
    [[nodiscard]] driver::Memory part(ByteRange range) const {
        return {memory.address.plus(range.begin), range.size()};
    }
    // The bytes of the region that have memory.
    [[nodiscard]] uint64_t committed_bytes() const { return memory.size - gap_bytes; }
    // True when it has no block and nothing in flight uses it.
    [[nodiscard]] bool is_unused() {
        if (!allocator.is_unused())
            return false;
        forget_ready();
        return unready.empty();
    }
    void forget_ready() {
        std::erase_if(unready, [](const Unready& part) { return part.until.is_complete(); });
    }
    // Moves the timepoints for which `range` waits to `lease`. std::bad_alloc leaves everything as it was.
    void take_unready(ByteRange range, Lease& lease) {
        if (unready.empty()) [[likely]]
            return;
        forget_ready();
        std::vector<Unready> rest;
        for (const Unready& part : unready) {
            if (!part.range.overlaps(range)) {
                rest.push_back(part);
                continue;
            }
            lease.after.push_back(part.until);
            if (part.range.begin < range.begin)
                rest.push_back({{part.range.begin, range.begin}, part.until});
            if (part.range.end > range.end)
                rest.push_back({{range.end, part.range.end}, part.until});
        }
        unready.swap(rest);
    }

    void free(const RegionAllocator::Block& place) {
        allocator.free(place);
        no_room_from = UINT64_MAX;
    }
    void grow(ByteCount bytes) {
        allocator.grow(bytes);
        no_room_from = UINT64_MAX;
    }

    driver::Memory memory;
    // A quick search for this many bytes or more would fail.
    uint64_t no_room_from = UINT64_MAX;
    uint64_t addresses = 0;  // the bytes of addresses that are reserved for a region that grows
    // The whole pages without memory within a region that grows, in ascending order. For the allocator they are blocks in use.
    std::vector<RegionAllocator::Block> gaps;
    uint64_t gap_bytes = 0;
    RegionAllocator allocator;
    // The free bytes that the system does not back with memory. Empty unless the source discards.
    RangeSet clean;
    std::vector<Unready> unready;
    uint64_t pending_bytes = 0;
    std::unique_ptr<Region> next_removed;
};

}  // namespace polder::memory
