// Holes of a BlockPool: places for a request that finds no free one. A hole consists of free ranges and of blocks that can be removed.
//
// A region is listed as a sequence of free ranges and removable blocks; any other block ends a run. In each run a window slides over the
// sequence. There are two uses. Pending blocks that only the consumer's queue still uses can become free memory at once: the window with the
// fewest bytes of such blocks is chosen. For compaction, blocks must fit elsewhere: of the best 64 windows of a region, the one with the
// fewest bytes to move is chosen. O(n log n) for n free ranges and removable blocks.
#include "block_pool_region.h"

#include <algorithm>
#include <functional>
#include <set>

namespace polder::memory {

// A free range, or a block that may be moved.
struct BlockPool::Part {
    static constexpr uint32_t free = UINT32_MAX;
    ByteRange range;
    uint32_t movable = free;  // the index of the block; or `free`

    [[nodiscard]] uint64_t bytes_to_move() const { return movable == free ? 0 : range.size(); }
};

struct BlockPool::Hole {
    uint32_t region = 0;
    std::vector<Part> parts;
    uint64_t moved_bytes = 0;
};

std::vector<BlockPool::Part> BlockPool::parts_of(uint32_t index, std::span<const Block> movable) const {
    std::vector<Part> parts;
    regions_[index]->allocator.for_each_free(ByteCount{1}, [&](ByteRange range) { parts.push_back({range}); });
    for (uint32_t i = 0; i < movable.size(); ++i)
        if (movable[i].region == index)
            parts.push_back({movable[i].place.range(), i});
    std::ranges::sort(parts, [](const Part& one, const Part& other) { return one.range.begin < other.range.begin; });
    return parts;
}

namespace {

// The neighbouring parts [first, last) of a list.
struct Window {
    size_t first = 0;
    size_t last = 0;
    uint64_t to_move = 0;
};

// For each part, the shortest window that begins with it and has room for the request, if any.
template <class Part, class HasRoom>
std::vector<Window> windows_of(std::span<const Part> parts, const HasRoom& has_room) {
    std::vector<Window> windows;
    Window window;
    for (; window.first < parts.size(); ++window.first) {
        const auto fits = [&] {
            return window.last > window.first &&
                   has_room(parts[window.first].range.begin, parts[window.last - 1].range.end);
        };
        while (window.last < parts.size() && !fits() &&
               (window.last == window.first || parts[window.last - 1].range.end == parts[window.last].range.begin))
            window.to_move += parts[window.last++].bytes_to_move();
        if (fits())
            windows.push_back(window);
        window.to_move -= parts[window.first].bytes_to_move();
    }
    return windows;
}

// Whether a range of a region is large enough for a request.
template <class Request>
auto room_for(const Request& request, DeviceAddress base) {
    return [&request, base = base.value](uint64_t begin, uint64_t end) {
        const uint64_t padding = request.alignment.round_up(base + begin) - (base + begin);
        return end - begin >= padding && end - begin - padding >= request.size.value;
    };
}

// Whether the blocks of a window fit into the free ranges outside of it: the largest first, each into the smallest that has room.
template <class Part>
bool fits_outside(std::span<const Part> parts, const Window& window) {
    std::multiset<uint64_t> free;
    std::vector<uint64_t> blocks;
    for (size_t i = 0; i < parts.size(); ++i) {
        const bool is_inside = i >= window.first && i < window.last;
        if (parts[i].bytes_to_move() == 0 && !is_inside)
            free.insert(parts[i].range.size());
        else if (parts[i].bytes_to_move() != 0 && is_inside)
            blocks.push_back(parts[i].bytes_to_move());
    }
    std::ranges::sort(blocks, std::greater{});
    for (const uint64_t block : blocks) {
        const auto place = free.lower_bound(block);
        if (place == free.end())
            return false;
        const uint64_t rest = *place - block;
        free.erase(place);
        if (rest != 0)
            free.insert(rest);
    }
    return true;
}

}  // namespace

// The consumer's queue need not wait for blocks that only it still uses. This merges several such blocks and the free memory between them to
// one place: the place with the fewest bytes of such blocks becomes free memory that is not ready.
bool BlockPool::merge_own_pending(const Request& request, Lease& leased) {
    if (request.terms.consumer == LeaseTerms::Consumer::host || !request.terms.queue || pending_.size() == 0)
        return false;
    const std::vector<Block> own = pending_.blocks_of(request.terms.queue);
    for (uint32_t index = 0; index < regions_.size(); ++index) {
        if (!regions_[index] || regions_[index]->pending_bytes == 0)
            continue;
        const std::vector<Part> parts = parts_of(index, own);
        const std::vector<Window> windows =
            windows_of(std::span<const Part>{parts}, room_for(request, regions_[index]->memory.address));
        const auto best = std::ranges::min_element(windows, {}, &Window::to_move);
        if (best == windows.end())
            continue;
        merge_pending(index, {parts[best->first].range.begin, parts[best->last - 1].range.end});
        if (try_region(index, request, Search::thorough, leased))
            return true;
    }
    return false;
}

std::optional<BlockPool::Hole> BlockPool::best_hole(uint32_t index, const LeaseRequest& request,
                                                    std::span<const Part> parts) const {
    constexpr size_t tries_max = 64;
    std::vector<Window> windows = windows_of(parts, room_for(request, regions_[index]->memory.address));
    std::ranges::sort(windows, {}, &Window::to_move);
    windows.resize(std::min(windows.size(), tries_max));
    for (const Window& window : windows)
        if (fits_outside(parts, window)) {
            const std::span<const Part> chosen = parts.subspan(window.first, window.last - window.first);
            return Hole{index, {chosen.begin(), chosen.end()}, window.to_move};
        }
    return std::nullopt;
}

bool BlockPool::open_hole(const LeaseRequest& request, std::span<const Block> movable, std::vector<uint32_t>& to_move) {
    flush_front();
    drain_all();
    const BiasedLock lock(mutex_);
    if (!within_limit(request.size))
        return false;
    std::optional<Hole> best;
    for (uint32_t index = 0; index < regions_.size(); ++index) {
        if (!regions_[index])
            continue;
        std::optional<Hole> hole = best_hole(index, request, parts_of(index, movable));
        if (hole && (!best || hole->moved_bytes < best->moved_bytes))
            best = std::move(hole);
    }
    if (!best)
        return false;
    for (const Part& part : best->parts)
        if (part.movable != Part::free)
            to_move.push_back(part.movable);
    const ByteRange range{best->parts.front().range.begin, best->parts.back().range.end};
    hole_.resize(best->parts.size());
    hole_region_ = best->region;
    RegionAllocator& allocator = regions_[hole_region_]->allocator;
    hole_.resize(allocator.take_free(ByteCount{1}, hole_, [&](ByteRange free) { return range.contains(free); }));
    return true;
}

void BlockPool::close_hole() noexcept {
    const BiasedLock lock(mutex_);
    for (const RegionAllocator::Block& place : hole_)
        regions_[hole_region_]->free(place);
    hole_.clear();
}

}  // namespace polder::memory
