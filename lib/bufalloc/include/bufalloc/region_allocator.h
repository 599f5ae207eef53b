// bufalloc: allocates byte ranges of one contiguous region, in constant time.
//
// It never accesses the memory that it manages: blocks are described by nodes in a separate array,
// linked by 32-bit indices. So a region may lie in a device's memory or exist only as numbers. Its users are
// the memory layer's allocators and drivers that manage an arena.
//
// Algorithm: two-level segregated fit (Masmano, Ripoll, Crespo, Real, "TLSF: a new dynamic memory
// allocator for real-time systems", ECRTS 2004), with 32 bins per power of two, so a bin's blocks differ
// by at most 1/32 in size. Free neighbours are always merged.
//
// The free block that was changed last is "open": it is in no bin until another block becomes the open one. So when a block is
// allocated from it and freed again, as for a buffer that lives for one command, no list and no bit map changes. A search
// treats the open block as the first block of its bin.
//
// A request never fails only because sizes are rounded to bins. It first examines a few blocks of the request's own bin, then takes
// the first block of the next bin whose blocks are all large enough. When these bins are empty, a request with
// `Search::thorough` examines all blocks of the bins that may have a large enough block; then it fails.
//
// Bounds. allocate: O(1) while a bin whose blocks are all large enough has a block; the thorough search is linear in
// the free blocks of one bin (1/32 of a power of two), or, for an alignment above the granularity, of the
// bins whose blocks fit only with little padding. Each bin has an upper bound of its sizes, which every failed
// search corrects, so that repeating a failed request is O(1). free: O(1). Space: 30 KiB, and 32 bytes
// per block, used or free; the node array grows by doubling. At most 2^32 - 2 blocks exist at a time.
//
// Not thread-safe: its owner makes sure that no function runs at the same time as a non-const one. Sizes, offsets
// and alignments are bytes.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <polder/types.h>
#include <span>
#include <utility>
#include <vector>

namespace polder {

class RegionAllocator {
public:
    // The unit in which processors compare the addresses of loads and earlier stores, and after which the sets of first-level caches repeat.
    static constexpr uint64_t page_bytes = 4096;

    // Where large blocks begin, so that the same element of several arrays has different addresses modulo page_bytes.
    struct Spread {
        uint64_t size_min = UINT64_MAX;  // smaller blocks are not moved
        // A block begins at the address of the block before it plus `step`, modulo page_bytes, if the free block that was found has room.
        uint64_t step = 0;
        uint64_t first = 0;  // the same for a block at the region's begin
    };

    struct Region {
        // `base + offset` of a block has the requested alignment. Any value, but base + size must not exceed 2^64.
        DeviceAddress base;
        ByteCount size;
        // Every block's address and size is a multiple of this. Bytes before the first and after the last
        // such address of the region are not used.
        Alignment granularity{64};
        Spread spread{};
    };

    // A used range. `size` is the requested size, rounded up to the granularity.
    struct Block {
        uint64_t offset = 0;
        ByteCount size;
        uint32_t node = 0;

        [[nodiscard]] ByteRange range() const { return ByteRange::at(offset, size); }
        friend bool operator==(const Block&, const Block&) = default;
    };

    enum class Search : uint8_t {
        quick,  // O(1); may not find a block that is larger than the request by less than a bin's width
        thorough,  // finds a block if any fits
    };

    struct Statistics {
        ByteCount capacity;  // free and used
        ByteCount free;
        ByteCount largest_free;  // exact
        uint64_t used_blocks = 0;
        uint64_t free_blocks = 0;
    };

    explicit RegionAllocator(const Region& region);

    // Nothing when no free block has room. A size of 0 counts as 1.
    [[nodiscard]] std::optional<Block> allocate(ByteCount size, Alignment alignment, Search search = Search::thorough);
    // `block` was returned by allocate() and has not been freed since.
    void free(const Block& block);

    // --- regions whose end moves ---
    // Adds `bytes`, a multiple of the granularity, at the region's end.
    void grow(ByteCount bytes);
    // free_tail: the size of the free block at the region's end. shrink: removes at most so many bytes from the end.
    [[nodiscard]] ByteCount free_tail() const;
    void shrink(ByteCount bytes);

    [[nodiscard]] bool is_unused() const { return used_blocks_ == 0; }
    [[nodiscard]] ByteCount free_bytes() const { return ByteCount{free_bytes_}; }
    // Exact. Linear in the free blocks of the highest bin that has any.
    [[nodiscard]] ByteCount largest_free() const;
    // As largest_free().
    [[nodiscard]] Statistics statistics() const;

    // Calls visitor(ByteRange) for every free block of at least `size_min` bytes, in no particular
    // order. Linear in those blocks. The visitor must not allocate or free.
    template <class Visitor>
    void for_each_free(ByteCount size_min, Visitor&& visitor) const;

    // Allocates up to places.size() free blocks of at least `size_min` bytes whole, those for which wanted(ByteRange)
    // returns true, and returns how many. Linear in the free blocks of that size.
    template <class Wanted>
    [[nodiscard]] size_t take_free(ByteCount size_min, std::span<Block> places, Wanted&& wanted);
    // The same, but of each free block it allocates the part that part(ByteRange) returns: its ends are multiples of the granularity, and
    // an empty part allocates nothing. std::bad_alloc leaves everything as it was.
    template <class Part>
    [[nodiscard]] size_t take_parts(ByteCount size_min, std::span<Block> places, Part&& part);
    // Makes the first `size` bytes of a used block a block of their own, and returns it; `block` keeps the rest. `size` is a multiple of
    // the granularity and smaller than the block. std::bad_alloc leaves everything as it was.
    [[nodiscard]] Block split(Block& block, ByteCount size);
    // The free bytes directly before and behind a used block.
    [[nodiscard]] ByteCount free_before(const Block& block) const { return free_size(nodes_[block.node].left); }
    [[nodiscard]] ByteCount free_behind(const Block& block) const { return free_size(nodes_[block.node].right); }

    // Checks every invariant; linear in the number of blocks. For tests.
    [[nodiscard]] bool validate() const;

private:
    using Index = uint32_t;
    // Node 0 is a sentinel: the neighbour of the first and the last block, so that the blocks form a ring. It counts as
    // used and has size 0, so that neighbours need no check for null.
    static constexpr Index none = 0;
    static constexpr Index used_mark = ~Index{0};  // in Node::next_free

    // One block, used or free, or an entry of the list of spare nodes (linked by next_free).
    struct alignas(32) Node {
        uint64_t offset = 0;
        uint64_t size = 0;
        Index left = none;  // neighbours in the region
        Index right = none;
        Index previous_free = none;  // neighbours in the bin
        Index next_free = none;
    };
    struct Bin {
        uint64_t bound = 0;  // no block of the bin is larger; 0 when empty
        Index head = none;
    };
    struct Request {
        uint64_t size = 0;  // a multiple of the granularity, not 0
        uint64_t alignment = 1;  // at least the granularity
    };

    // 32 exact bins for the sizes 0 to 31 granules, then 32 for each power of two.
    static constexpr uint32_t bins_per_level_log2 = 5;
    static constexpr uint32_t bins_per_level = 1u << bins_per_level_log2;
    static constexpr uint32_t levels = 64 - bins_per_level_log2 + 1;
    static constexpr uint32_t bin_count = levels * bins_per_level;
    static constexpr uint32_t peek_max = 2;  // blocks of the request's own bin that a quick search examines

    [[nodiscard]] static uint32_t shift_of(uint64_t granules) {
        return static_cast<uint32_t>(std::bit_width(granules | bins_per_level)) - 1 - bins_per_level_log2;
    }
    [[nodiscard]] uint32_t bin_of(uint64_t size) const;
    [[nodiscard]] uint32_t bin_that_fits(uint64_t size) const;
    [[nodiscard]] uint32_t bin_that_surely_fits(const Request& request) const;
    [[nodiscard]] uint32_t next_nonempty_bin(uint32_t bin) const;
    [[nodiscard]] uint64_t padding(const Node& node, uint64_t alignment) const;
    [[nodiscard]] bool fits(const Node& node, const Request& request) const;
    [[nodiscard]] uint64_t bytes_before(const Node& node, const Request& request) const;

    [[nodiscard]] Index find(const Request& request, Search search);
    [[nodiscard]] Index find_in_bin(uint32_t bin, const Request& request, uint32_t look_at_most) const;
    [[nodiscard]] Index find_in_bins(uint32_t first, uint32_t last, const Request& request);
    [[nodiscard]] Block carve(Index index, uint64_t before, uint64_t size);

    template <class Visitor>
    void for_each_free_node(ByteCount size_min, Visitor&& visitor) const;
    [[nodiscard]] bool is_free(Index index) const { return nodes_[index].next_free != used_mark; }
    [[nodiscard]] ByteCount free_size(Index index) const { return ByteCount{is_free(index) ? nodes_[index].size : 0}; }
    [[nodiscard]] Index insert_left_of(Index index, uint64_t size);
    void remove_left_of(Index index);
    void remove_right_of(Index index);
    void open(Index index);
    void take_out(Index index);
    void resized(Index index, uint64_t size_before);
    void rebin(Index index, uint64_t size_before);
    void link_free(Index index, uint32_t number);
    void unlink_free(Index index, uint32_t number);
    [[nodiscard]] Index take_spare_node();
    void give_spare_node(Index index);
    void add_nodes();

    struct Census;
    [[nodiscard]] bool validate_blocks(Census& census) const;
    [[nodiscard]] bool validate_bins(const Census& census) const;
    [[nodiscard]] bool validate_bin(uint32_t bin, Census& census) const;

    std::vector<Node> nodes_;  // the sentinel first
    Index spare_ = none;  // list of nodes that describe no block
    uint32_t spare_nodes_ = 0;
    Index open_ = none;  // the free block that is in no bin

    uint64_t base_;
    uint64_t granularity_;
    uint32_t granularity_log2_;
    Spread spread_;
    uint64_t begin_ = 0;  // the used part of the region
    uint64_t capacity_ = 0;

    uint64_t free_bytes_ = 0;
    uint64_t used_blocks_ = 0;
    uint64_t free_blocks_ = 0;

    uint64_t levels_with_blocks_ = 0;
    std::array<uint32_t, levels> bins_with_blocks_{};
    std::array<Bin, bin_count> bins_{};
};

template <class Visitor>
void RegionAllocator::for_each_free_node(ByteCount size_min, Visitor&& visitor) const {
    if (open_ != none && nodes_[open_].size >= size_min.value)
        visitor(open_);
    for (uint32_t bin = next_nonempty_bin(bin_of(size_min.value)); bin < bin_count; bin = next_nonempty_bin(bin + 1))
        for (Index index = bins_[bin].head; index != none; index = nodes_[index].next_free)
            if (nodes_[index].size >= size_min.value)
                visitor(index);
}

template <class Visitor>
void RegionAllocator::for_each_free(ByteCount size_min, Visitor&& visitor) const {
    for_each_free_node(
        size_min, [&](Index index) { visitor(ByteRange::at(nodes_[index].offset, ByteCount{nodes_[index].size})); });
}

template <class Wanted>
size_t RegionAllocator::take_free(ByteCount size_min, std::span<Block> places, Wanted&& wanted) {
    return take_parts(size_min, places, [&](ByteRange range) { return wanted(range) ? range : ByteRange{}; });
}

template <class Part>
size_t RegionAllocator::take_parts(ByteCount size_min, std::span<Block> places, Part&& part) {
    size_t count = 0;
    for_each_free_node(size_min, [&](Index index) {
        if (count == places.size())
            return;
        const ByteRange wanted = part(ByteRange::at(nodes_[index].offset, ByteCount{nodes_[index].size}));
        if (!wanted.empty())
            places[count++] = {wanted.begin, ByteCount{wanted.size()}, index};
    });
    while (spare_nodes_ < 2 * count)
        add_nodes();
    for (Block& place : places.first(count))
        place = carve(place.node, place.offset - nodes_[place.node].offset, place.size.value);
    return count;
}

// How many bytes of free block `node`, which fits, stay free before the block of the request.
inline uint64_t RegionAllocator::bytes_before(const Node& node, const Request& request) const {
    const uint64_t least = padding(node, request.alignment);
    if (request.size < spread_.size_min) [[likely]]
        return least;
    const uint64_t begin = base_ + node.offset;
    const uint64_t wanted = node.left == none ? spread_.first : base_ + nodes_[node.left].offset + spread_.step;
    const uint64_t before = (wanted - begin) & (page_bytes - 1);
    const bool is_aligned = ((begin + before) & (request.alignment - 1)) == 0;
    return is_aligned && before <= node.size - request.size ? before : least;
}

}  // namespace polder
