// In the order of this file: growing and shrinking the region; sizes to bins; the search for a free block; splitting and
// merging blocks; the lists of bins; validate.
#include <bufalloc/region_allocator.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace polder {
namespace {

constexpr size_t large_page_bytes = size_t{2} << 20;

// Requests large pages for an array that was never accessed. The system may ignore the request.
void ask_for_large_pages(void* memory, size_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    const uintptr_t first = (begin + large_page_bytes - 1) & ~(large_page_bytes - 1);
    const uintptr_t end = (begin + bytes) & ~(large_page_bytes - 1);
    if (first < end)
        madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace

RegionAllocator::RegionAllocator(const Region& region)
    : base_(region.base.value), granularity_(region.granularity.value),
      granularity_log2_(static_cast<uint32_t>(std::countr_zero(region.granularity.value))), spread_(region.spread) {
    assert(region.size.value == 0 || base_ + (region.size.value - 1) >= base_);
    nodes_.push_back(Node{0, 0, none, none, none, used_mark});
    begin_ = (0 - base_) & (granularity_ - 1);
    if (region.size.value > begin_)
        capacity_ = (region.size.value - begin_) & ~(granularity_ - 1);
    if (capacity_ == 0)
        return;
    add_nodes();
    open_ = take_spare_node();
    nodes_[open_] = Node{begin_, capacity_, none, none, none, none};
    nodes_[none].left = nodes_[none].right = open_;
    free_bytes_ = capacity_;
    free_blocks_ = 1;
}

[[gnu::flatten]] std::optional<RegionAllocator::Block> RegionAllocator::allocate(ByteCount size, Alignment alignment,
                                                                                 Search search) {
    if (size.value > free_bytes_)
        return std::nullopt;
    const uint64_t rounded = (std::max<uint64_t>(size.value, 1) + granularity_ - 1) & ~(granularity_ - 1);
    const Request request{rounded, std::max(alignment.value, granularity_)};
    const Index index = find(request, search);
    if (index == none)
        return std::nullopt;
    return carve(index, bytes_before(nodes_[index], request), request.size);
}

[[gnu::flatten]] void RegionAllocator::free(const Block& block) {
    const Index index = block.node;
    assert(index < nodes_.size());
    const Node& node = nodes_[index];
    assert(node.next_free == used_mark && "freed twice, or not from here");
    assert(node.offset == block.offset && node.size == block.size.value);

    free_bytes_ += node.size;
    --used_blocks_;
    const Index left = node.left;
    const Index right = node.right;
    if (is_free(left)) {
        const uint64_t size_before = nodes_[left].size;
        if (is_free(right)) {
            take_out(right);
            remove_right_of(index);
            --free_blocks_;
        }
        remove_right_of(left);
        resized(left, size_before);
    } else if (is_free(right)) {
        const uint64_t size_before = nodes_[right].size;
        remove_left_of(right);
        resized(right, size_before);
    } else {
        open(index);
        ++free_blocks_;
    }
}

// Adds a used block and frees it at once, so that it merges with a free block before it.
void RegionAllocator::grow(ByteCount bytes) {
    assert(bytes.value != 0 && (bytes.value & (granularity_ - 1)) == 0);
    if (spare_nodes_ < 2)
        add_nodes();
    const Index last = nodes_[none].left;
    const Index index = take_spare_node();
    const uint64_t offset = begin_ + capacity_;
    nodes_[index] = Node{offset, bytes.value, last, none, none, used_mark};
    nodes_[last].right = index;
    nodes_[none].left = index;
    capacity_ += bytes.value;
    ++used_blocks_;
    free({offset, bytes, index});
}

ByteCount RegionAllocator::free_tail() const {
    const Index last = nodes_[none].left;
    return ByteCount{is_free(last) ? nodes_[last].size : 0};
}

void RegionAllocator::shrink(ByteCount bytes) {
    assert(bytes <= free_tail() && (bytes.value & (granularity_ - 1)) == 0);
    if (bytes.value == 0)
        return;
    const Index last = nodes_[none].left;
    capacity_ -= bytes.value;
    free_bytes_ -= bytes.value;
    if (const uint64_t before = nodes_[last].size; bytes.value != before) {
        nodes_[last].size -= bytes.value;
        resized(last, before);
        return;
    }
    take_out(last);
    const Index left = nodes_[last].left;
    nodes_[left].right = none;
    nodes_[none].left = left;
    give_spare_node(last);
    --free_blocks_;
}

ByteCount RegionAllocator::largest_free() const {
    uint64_t largest = nodes_[open_].size;
    if (levels_with_blocks_ == 0)
        return ByteCount{largest};
    const uint32_t level = static_cast<uint32_t>(std::bit_width(levels_with_blocks_)) - 1;
    const uint32_t bin = level * bins_per_level + static_cast<uint32_t>(std::bit_width(bins_with_blocks_[level])) - 1;
    // The search ends at a block as large as the bin's bound, because no block is larger. So it does not examine all of many equal blocks.
    for (Index index = bins_[bin].head; index != none && largest < bins_[bin].bound; index = nodes_[index].next_free)
        largest = std::max(largest, nodes_[index].size);
    return ByteCount{largest};
}

RegionAllocator::Statistics RegionAllocator::statistics() const {
    return {ByteCount{capacity_}, ByteCount{free_bytes_}, largest_free(), used_blocks_, free_blocks_};
}

// ---- bins ----

// The bin of a free block of `size` bytes. For sizes below twice the bins of a level the shift is 0, and each number of granules has
// a bin, so small sizes are no special case.
uint32_t RegionAllocator::bin_of(uint64_t size) const {
    const uint64_t granules = size >> granularity_log2_;
    const uint32_t shift = shift_of(granules);
    return shift * bins_per_level + static_cast<uint32_t>(granules >> shift);
}

// The lowest bin whose blocks all have at least `size` bytes.
uint32_t RegionAllocator::bin_that_fits(uint64_t size) const {
    const uint64_t granules = size >> granularity_log2_;
    const uint32_t shift = shift_of(granules);
    const uint64_t whole = granules >> shift;
    return shift * bins_per_level + static_cast<uint32_t>(whole) + ((whole << shift) != granules ? 1 : 0);
}

// The lowest bin from `bin` on that has a block, or bin_count.
uint32_t RegionAllocator::next_nonempty_bin(uint32_t bin) const {
    if (bin >= bin_count)
        return bin_count;
    uint32_t level = bin / bins_per_level;
    const uint32_t here = bins_with_blocks_[level] & (~0u << (bin % bins_per_level));
    if (here != 0)
        return level * bins_per_level + static_cast<uint32_t>(std::countr_zero(here));
    const uint64_t above = levels_with_blocks_ & ~((uint64_t{2} << level) - 1);
    if (above == 0)
        return bin_count;
    level = static_cast<uint32_t>(std::countr_zero(above));
    return level * bins_per_level + static_cast<uint32_t>(std::countr_zero(bins_with_blocks_[level]));
}

// ---- search ----

uint64_t RegionAllocator::padding(const Node& node, uint64_t alignment) const {
    return (0 - (base_ + node.offset)) & (alignment - 1);
}

bool RegionAllocator::fits(const Node& node, const Request& request) const {
    return node.size >= request.size && node.size - request.size >= padding(node, request.alignment);
}

// Treats the open block as the first block of the bin that its size belongs to.
RegionAllocator::Index RegionAllocator::find(const Request& request, Search search) {
    const uint32_t own = bin_of(request.size);
    const Node& open = nodes_[open_];
    const uint32_t open_bin = fits(open, request) ? bin_of(open.size) : bin_count;
    if (open_bin == own)
        return open_;

    uint32_t bin = next_nonempty_bin(own);
    if (bin == own)
        if (const Index index = find_in_bin(own, request, peek_max); index != none)
            return index;
    if (bin == own || request.alignment > granularity_)  // otherwise every block of the bin fits
        bin = next_nonempty_bin(bin_that_surely_fits(request));
    if (open_bin <= bin && open_bin != bin_count)
        return open_;
    if (bin != bin_count)
        return bins_[bin].head;
    return search == Search::quick ? none : find_in_bins(own, bin_that_surely_fits(request), request);
}

// The lowest bin whose blocks all have room also with padding: at most alignment - granularity, as blocks begin at granules.
uint32_t RegionAllocator::bin_that_surely_fits(const Request& request) const {
    const uint64_t with_padding = request.size + (request.alignment - granularity_);
    return with_padding >= request.size ? bin_that_fits(with_padding) : bin_count;
}

RegionAllocator::Index RegionAllocator::find_in_bin(uint32_t bin, const Request& request, uint32_t look_at_most) const {
    for (Index index = bins_[bin].head; index != none && look_at_most > 0; --look_at_most) {
        const Node& node = nodes_[index];
        if (fits(node, request))
            return index;
        index = node.next_free;
    }
    return none;
}

// Searches the bins [first, last) entirely.
RegionAllocator::Index RegionAllocator::find_in_bins(uint32_t first, uint32_t last, const Request& request) {
    for (uint32_t bin = next_nonempty_bin(first); bin < last; bin = next_nonempty_bin(bin + 1)) {
        if (bins_[bin].bound < request.size)
            continue;
        uint64_t largest = 0;
        for (Index index = bins_[bin].head; index != none; index = nodes_[index].next_free) {
            if (fits(nodes_[index], request))
                return index;
            largest = std::max(largest, nodes_[index].size);
        }
        bins_[bin].bound = largest;
    }
    return none;
}

// ---- blocks ----

// Makes a used block of `size` bytes within free block `index`, `before` bytes after its begin; the rests before and after it
// stay free. The neighbours of a free block are used, so the rests merge with nothing. The rest after the used block keeps
// the node, and its place in the bin.
RegionAllocator::Block RegionAllocator::carve(Index index, uint64_t before, uint64_t size) {
    if (spare_nodes_ < 2)
        add_nodes();
    const uint64_t whole = nodes_[index].size;
    const uint64_t offset = nodes_[index].offset + before;
    Index used = index;
    if (whole - before != size) {
        used = insert_left_of(index, before + size);
        resized(index, whole);
    } else {
        take_out(index);
        --free_blocks_;
    }
    if (before != 0) {
        const Index front = insert_left_of(used, before);
        link_free(front, bin_of(before));
        ++free_blocks_;
    }
    nodes_[used].next_free = used_mark;
    free_bytes_ -= size;
    ++used_blocks_;
    return {offset, ByteCount{size}, used};
}

RegionAllocator::Block RegionAllocator::split(Block& block, ByteCount size) {
    assert(!is_free(block.node) && size.value != 0 && size < block.size && (size.value & (granularity_ - 1)) == 0);
    if (spare_nodes_ < 1)
        add_nodes();
    const Index first = insert_left_of(block.node, size.value);
    nodes_[first].next_free = used_mark;
    ++used_blocks_;
    const Block made{block.offset, size, first};
    block = {block.offset + size.value, ByteCount{block.size.value - size.value}, block.node};
    return made;
}

// Makes the first `size` bytes of block `index` a block of their own, in no bin.
RegionAllocator::Index RegionAllocator::insert_left_of(Index index, uint64_t size) {
    const Index fresh = take_spare_node();
    Node& node = nodes_[index];
    nodes_[fresh] = Node{node.offset, size, node.left, index, none, none};
    nodes_[node.left].right = fresh;
    node.left = fresh;
    node.offset += size;
    node.size -= size;
    return fresh;
}

// Block `index` takes over the bytes of its left neighbour, which is in no bin.
void RegionAllocator::remove_left_of(Index index) {
    Node& node = nodes_[index];
    const Index gone = node.left;
    node.offset -= nodes_[gone].size;
    node.size += nodes_[gone].size;
    node.left = nodes_[gone].left;
    nodes_[node.left].right = index;
    give_spare_node(gone);
}

// Block `index` takes over the bytes of its right neighbour, which is in no bin.
void RegionAllocator::remove_right_of(Index index) {
    Node& node = nodes_[index];
    const Index gone = node.right;
    node.size += nodes_[gone].size;
    node.right = nodes_[gone].right;
    nodes_[node.right].left = index;
    give_spare_node(gone);
}

// ---- the open block ----

// Makes free block `index`, which is in no bin, the open block.
void RegionAllocator::open(Index index) {
    const Index closed = std::exchange(open_, index);
    nodes_[index].next_free = none;
    if (closed != none)
        link_free(closed, bin_of(nodes_[closed].size));
}

// Removes free block `index` from its bin, or closes it if it is open.
void RegionAllocator::take_out(Index index) {
    if (index == open_)
        open_ = none;
    else
        unlink_free(index, bin_of(nodes_[index].size));
}

// Free block `index` had `size_before` bytes and has another size now: moves it to the right bin.
void RegionAllocator::resized(Index index, uint64_t size_before) {
    if (index != open_)
        rebin(index, size_before);
}

// The block stays in its bin if its new size belongs there, as when a small block is allocated from a large one.
[[gnu::noinline]] void RegionAllocator::rebin(Index index, uint64_t size_before) {
    const uint32_t from = bin_of(size_before);
    const uint32_t to = bin_of(nodes_[index].size);
    if (from == to) {
        bins_[to].bound = std::max(bins_[to].bound, nodes_[index].size);
        return;
    }
    unlink_free(index, from);
    open(index);
}

// ---- lists ----

void RegionAllocator::link_free(Index index, uint32_t number) {
    Node& node = nodes_[index];
    Bin& bin = bins_[number];
    node.previous_free = none;
    node.next_free = bin.head;
    if (bin.head != none)
        nodes_[bin.head].previous_free = index;
    bin.head = index;
    bin.bound = std::max(bin.bound, node.size);
    bins_with_blocks_[number / bins_per_level] |= 1u << (number % bins_per_level);
    levels_with_blocks_ |= uint64_t{1} << (number / bins_per_level);
}

void RegionAllocator::unlink_free(Index index, uint32_t number) {
    const Node& node = nodes_[index];
    if (node.next_free != none)
        nodes_[node.next_free].previous_free = node.previous_free;
    if (node.previous_free != none) {
        nodes_[node.previous_free].next_free = node.next_free;
        return;
    }
    Bin& bin = bins_[number];
    bin.head = node.next_free;
    if (bin.head != none)
        return;
    bin.bound = 0;
    uint32_t& bins = bins_with_blocks_[number / bins_per_level];
    bins &= ~(1u << (number % bins_per_level));
    if (bins == 0)
        levels_with_blocks_ &= ~(uint64_t{1} << (number / bins_per_level));
}

// ---- nodes ----

[[gnu::noinline]] void RegionAllocator::add_nodes() {
    const size_t old_size = nodes_.size();
    const size_t new_size = std::min<size_t>(std::max<size_t>(2 * old_size, 64), used_mark);
    assert(new_size >= old_size + 2 && "more than 2^32 - 2 blocks");
    // Large pages, because nodes are accessed at random: with a million of them in pages of 4 KiB, nearly each access would also miss the TLB.
    std::vector<Node> larger;
    larger.reserve(new_size);
    if (new_size * sizeof(Node) >= large_page_bytes)
        ask_for_large_pages(larger.data(), new_size * sizeof(Node));
    larger.assign(nodes_.begin(), nodes_.end());
    larger.resize(new_size);
    nodes_.swap(larger);
    // Pushes the lowest index last, so that it is used first and the used nodes stay dense.
    for (size_t index = new_size; index-- > old_size;)
        give_spare_node(static_cast<Index>(index));
}

RegionAllocator::Index RegionAllocator::take_spare_node() {
    assert(spare_nodes_ != 0);
    const Index index = spare_;
    spare_ = nodes_[index].next_free;
    --spare_nodes_;
    return index;
}

void RegionAllocator::give_spare_node(Index index) {
    nodes_[index].next_free = spare_;
    spare_ = index;
    ++spare_nodes_;
}

// ---- invariants ----

struct RegionAllocator::Census {
    uint64_t used_blocks = 0;
    uint64_t free_blocks = 0;
    uint64_t free_bytes = 0;
};

bool RegionAllocator::validate() const {
    Census blocks;
    if (nodes_[none].size != 0 || is_free(none) || !validate_blocks(blocks) || !validate_bins(blocks))
        return false;
    if (blocks.used_blocks != used_blocks_ || blocks.free_blocks != free_blocks_ || blocks.free_bytes != free_bytes_)
        return false;
    uint64_t spare = 0;
    for (Index index = spare_; index != none && spare <= nodes_.size(); index = nodes_[index].next_free)
        ++spare;
    return spare == spare_nodes_ && 1 + spare + used_blocks_ + free_blocks_ == nodes_.size();
}

// The blocks tile the region, each has the indices of its neighbours, and no two free blocks are neighbours.
bool RegionAllocator::validate_blocks(Census& census) const {
    uint64_t offset = begin_;
    Index left = none;
    bool left_is_free = false;
    for (Index index = nodes_[none].right; index != none; index = nodes_[index].right) {
        if (index >= nodes_.size())
            return false;
        const Node& node = nodes_[index];
        const bool is_free = node.next_free != used_mark;
        const bool aligned = ((base_ + node.offset) & (granularity_ - 1)) == 0 && (node.size & (granularity_ - 1)) == 0;
        if (node.offset != offset || node.size == 0 || node.left != left || !aligned || (is_free && left_is_free) ||
            node.size > capacity_ - (offset - begin_))
            return false;
        (is_free ? census.free_blocks : census.used_blocks) += 1;
        census.free_bytes += is_free ? node.size : 0;
        offset += node.size;
        left = index;
        left_is_free = is_free;
    }
    return offset == begin_ + capacity_ && nodes_[none].left == left;
}

// Every free block except for the open one is in its bin, and in no other; the bit maps have a bit for each bin with blocks.
bool RegionAllocator::validate_bins(const Census& census) const {
    Census in_bins{0, open_ != none ? uint64_t{1} : 0, nodes_[open_].size};
    if (open_ != none && !is_free(open_))
        return false;
    for (uint32_t bin = 0; bin < bin_count; ++bin)
        if (!validate_bin(bin, in_bins))
            return false;
    for (uint32_t level = 0; level < levels; ++level)
        if (((levels_with_blocks_ >> level) & 1) != (bins_with_blocks_[level] != 0 ? 1 : 0))
            return false;
    return in_bins.free_blocks == census.free_blocks && in_bins.free_bytes == census.free_bytes;
}

bool RegionAllocator::validate_bin(uint32_t bin, Census& census) const {
    const bool marked = ((bins_with_blocks_[bin / bins_per_level] >> (bin % bins_per_level)) & 1) != 0;
    if (marked != (bins_[bin].head != none) || (!marked && bins_[bin].bound != 0))
        return false;
    Index previous = none;
    for (Index index = bins_[bin].head; index != none; index = nodes_[index].next_free) {
        if (index >= nodes_.size() || census.free_blocks > nodes_.size())
            return false;
        const Node& node = nodes_[index];
        if (index == open_ || node.previous_free != previous || bin_of(node.size) != bin ||
            node.size > bins_[bin].bound)
            return false;
        census.free_blocks += 1;
        census.free_bytes += node.size;
        previous = index;
    }
    return true;
}

}  // namespace polder
