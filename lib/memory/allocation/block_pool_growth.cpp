// A region of a BlockPool that grows in place: its addresses are reserved once, and get memory in whole pages.
//
// A request that finds no room needs contiguous addresses. They may lie after the region's end, or within it where pages were released
// (gaps). The candidates are windows of addresses without a block that begin or end where a gap or idle pages do. Of the windows for which
// the source's memory and the idle pages elsewhere are enough, the one that needs the fewest new pages is chosen. Before its pages are committed,
// as many idle pages outside of it are released. So unused reserved memory is less than a page at each end of a hole, plus one growth step.
// No page is released while requests find room, and one request releases at most as many bytes as it needs, rounded up to pages.
//
// Every call to the source is made without the pool's lock, by the thread that has the turn. O(n log n) for n gaps and holes of at least a page.
#include "block_pool_region.h"

#include <base/log.h>
#include <base/scope_exit.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cinttypes>
#include <functional>
#include <new>
#include <utility>

namespace polder::memory {
namespace {

// How many holes are released at a time.
constexpr size_t holes_max = 64;

ByteRange whole_pages(ByteRange range, Alignment page) {
    const uint64_t begin = page.round_up(range.begin);
    const uint64_t end = range.end & ~(page.value - 1);
    return begin < end ? ByteRange{begin, end} : ByteRange{};
}

// A range of a region without a block in use. The gaps in it have the indices [first_gap, last_gap).
struct Run {
    ByteRange range;
    size_t first_gap = 0;
    size_t last_gap = 0;
};

}  // namespace

// The place where a request gets room, and the memory that it needs.
struct BlockPool::Extension {
    ByteRange window;
    std::vector<ByteRange> parts;  // those without memory: first in gaps, then after the region's end
    uint64_t bytes = 0;  // the size of the parts
    uint64_t idle_bytes = 0;  // the size of idle pages outside of the window
};

namespace {

// The runs that contain gaps, and the run at the region's end, which extends to the end of its addresses.
template <class Region>
std::vector<Run> runs_of(const Region& region) {
    std::vector<Run> runs;
    const auto& gaps = region.gaps;
    for (size_t next = 0; next < gaps.size();) {
        Run run;
        run.first_gap = next;
        const uint64_t begin = gaps[next].offset - region.allocator.free_before(gaps[next]).value;
        uint64_t end = 0;
        do {
            end = gaps[next].range().end + region.allocator.free_behind(gaps[next]).value;
            ++next;
        } while (next < gaps.size() && gaps[next].offset == end);
        run.last_gap = next;
        run.range = {begin, end};
        runs.push_back(run);
    }
    const uint64_t tail = region.memory.size - region.allocator.free_tail().value;
    if (runs.empty() || runs.back().range.end != region.memory.size)
        runs.push_back({{tail, region.memory.size}, gaps.size(), gaps.size()});
    runs.back().range.end = region.addresses;
    return runs;
}

// The parts of a window of a run that have no memory.
template <class Extension, class Region>
Extension extension_at(const Region& region, const Run& run, ByteRange window, Alignment page) {
    Extension made;
    made.window = window;
    const auto add = [&](ByteRange part) {
        if (part.empty())
            return;
        made.parts.push_back({part.begin & ~(page.value - 1), page.round_up(part.end)});
        made.bytes += made.parts.back().size();
    };
    for (size_t index = run.first_gap; index < run.last_gap; ++index)
        add(region.gaps[index].range().intersect(window));
    add(window.intersect({region.memory.size, std::max(region.memory.size, window.end)}));
    return made;
}

// The whole pages of free blocks outside of `kept` that nothing in flight uses, in no particular order.
template <class Region>
std::vector<ByteRange> idle_pages(Region& region, ByteRange kept, Alignment page) {
    std::vector<ByteRange> idle;
    region.forget_ready();
    std::vector<ByteRange> used{kept};
    for (const auto& part : region.unready)
        used.push_back(part.range);
    std::ranges::sort(used, {}, &ByteRange::begin);
    region.allocator.for_each_free(ByteCount{page.value}, [&](ByteRange free) {
        const auto add = [&](uint64_t begin, uint64_t end) {
            const ByteRange pages = begin < end ? whole_pages({begin, end}, page) : ByteRange{};
            if (!pages.empty())
                idle.push_back(pages);
        };
        uint64_t begin = free.begin;
        for (const ByteRange& part : used) {
            if (!part.overlaps(free))
                continue;
            add(begin, part.begin);
            begin = std::max(begin, part.end);
        }
        add(begin, free.end);
    });
    return idle;
}

// Computes how many bytes of a window are in a set of disjoint ranges.
class Coverage {
public:
    explicit Coverage(std::vector<ByteRange> ranges) : ranges_(std::move(ranges)) {
        std::ranges::sort(ranges_, {}, &ByteRange::begin);
        before_.reserve(ranges_.size() + 1);
        before_.push_back(0);
        for (const ByteRange& range : ranges_)
            before_.push_back(before_.back() + range.size());
    }
    [[nodiscard]] const std::vector<ByteRange>& ranges() const { return ranges_; }
    [[nodiscard]] uint64_t bytes() const { return before_.back(); }
    [[nodiscard]] uint64_t bytes_in(ByteRange window) const {
        const auto first = std::ranges::upper_bound(ranges_, window.begin, {}, &ByteRange::end);
        const auto past = std::ranges::lower_bound(ranges_, window.end, {}, &ByteRange::begin);
        if (first >= past)
            return 0;
        const uint64_t all = before_[static_cast<size_t>(past - ranges_.begin())] -
                             before_[static_cast<size_t>(first - ranges_.begin())];
        const uint64_t left = window.begin - std::min(window.begin, first->begin);
        const uint64_t right = (past - 1)->end - std::min(window.end, (past - 1)->end);
        return all - left - right;
    }

private:
    std::vector<ByteRange> ranges_;
    std::vector<uint64_t> before_;  // for each range, the bytes of the ranges before it; then the bytes of all
};

// Calls f(begin) for the windows of `size` bytes in a run that begin or end where the run or one of the sorted `ranges` does. No window
// begins after the region's end.
template <class F>
void for_each_window(const Run& run, uint64_t size, uint64_t region_end, const std::vector<ByteRange>& ranges, F&& f) {
    if (run.range.size() < size)
        return;
    const uint64_t last = std::min(run.range.end - size, region_end);
    f(run.range.begin);
    f(last);
    for (auto next = std::ranges::lower_bound(ranges, run.range.begin, {}, &ByteRange::begin);
         next != ranges.end() && next->begin < run.range.end; ++next) {
        for (const uint64_t begin : {next->begin, next->end})
            if (begin <= last)
                f(begin);
        for (const uint64_t end : {next->begin, next->end})
            if (end >= size && end - size >= run.range.begin && end - size <= last)
                f(end - size);
    }
}

}  // namespace

// The place that needs the fewest new pages, of those for which `available` bytes and idle pages elsewhere suffice.
std::optional<BlockPool::Extension> BlockPool::best_extension(Region& region, const Request& request,
                                                              uint64_t available) const {
    const Alignment page = source_->growable()->page();
    const uint64_t padding = std::max(request.alignment, options_.granularity).value - options_.granularity.value;
    const uint64_t needed = options_.granularity.round_up(std::max<uint64_t>(request.size.value, 1)) + padding;
    if (needed < request.size.value)
        return std::nullopt;
    std::vector<ByteRange> without_memory;
    for (const RegionAllocator::Block& gap : region.gaps)
        without_memory.push_back(gap.range());
    if (region.memory.size < region.addresses)
        without_memory.push_back({region.memory.size, region.addresses});
    const Coverage missing{std::move(without_memory)};
    const Coverage idle{idle_pages(region, {}, page)};
    struct Place {
        Run run;
        ByteRange window;
        uint64_t missing_bytes = 0;
        uint64_t idle_bytes = 0;  // the size of idle pages outside of the place
    };
    std::optional<Place> best;
    for (const Run& run : runs_of(region)) {
        const auto consider = [&](uint64_t begin) {
            const ByteRange window = ByteRange::at(begin, ByteCount{needed});
            const ByteRange pages{window.begin & ~(page.value - 1), page.round_up(window.end)};
            const Place place{run, window, missing.bytes_in(pages), idle.bytes() - idle.bytes_in(pages)};
            if (place.missing_bytes <= available + place.idle_bytes &&
                (!best || place.missing_bytes < best->missing_bytes))
                best = place;
        };
        for_each_window(run, needed, region.memory.size, missing.ranges(), consider);
        for_each_window(run, needed, region.memory.size, idle.ranges(), consider);
    }
    if (!best)
        return std::nullopt;
    Extension extension = extension_at<Extension>(region, best->run, best->window, page);
    assert(extension.bytes == best->missing_bytes);
    extension.idle_bytes = best->idle_bytes;
    return extension;
}

bool BlockPool::grow_in_place(const Request& request, Ladder& ladder, Lease& leased) {
    const Alignment page = source_->growable()->page();
    uint64_t reserved = 0;
    {
        const BiasedLock lock(mutex_);
        reserved = reserved_bytes_;
    }
    const uint64_t available = source_->available().value;
    const uint64_t all = reserved + available;
    const uint32_t index = growing_region(ByteCount{page.round_up(2 * all + page.value)}, ladder);
    if (index == UINT32_MAX)
        return false;
    Region* grown = nullptr;  // is not removed during the turn
    std::optional<Extension> extension;
    Removed removed;
    // Releases the removed memory, also when std::bad_alloc is thrown halfway.
    const ScopeExit give_back{[&]() noexcept { give_to_source(std::move(removed)); }};
    {
        const BiasedLock lock(mutex_);
        grown = regions_[index].get();
        Region& region = *grown;
        extension = best_extension(region, request, available);
        if (!extension)
            return false;
        if (extension->idle_bytes != 0)
            remove_idle_pages(region, extension->window, extension->bytes, removed);
        else
            add_step(region, *extension, available);
        isolate_gaps(region, *extension);
    }
    give_to_source(std::move(removed));
    for (const ByteRange& part : extension->parts)
        if (!commit_part(*grown, part, ladder))
            return false;
    const BiasedLock lock(mutex_);
    watch_free_memory(*grown);
    return try_region(index, request, Search::thorough, leased);
}

// At its end the region grows in steps of 1/64 of its size, so that little memory is unused and the source is called rarely.
void BlockPool::add_step(const Region& region, Extension& extension, uint64_t available) const {
    if (extension.parts.empty() || extension.parts.back().begin < region.memory.size)
        return;
    ByteRange& tail = extension.parts.back();
    const uint64_t step = source_->growable()->page().round_up(region.memory.size / 64);
    const uint64_t room = std::min(region.addresses - tail.end, available - std::min(available, extension.bytes));
    if (tail.size() >= step || step - tail.size() > room)
        return;
    extension.bytes += step - tail.size();
    tail.end = tail.begin + step;
}

// Each part of an extension that lies in a gap becomes a gap of its own, so that committing it needs no host memory afterwards.
void BlockPool::isolate_gaps(Region& region, const Extension& extension) {
    region.gaps.reserve(region.gaps.size() + 2 * extension.parts.size());
    for (const ByteRange& part : extension.parts) {
        if (part.begin >= region.memory.size)
            continue;
        auto gap = std::ranges::upper_bound(region.gaps, part.begin, {}, &RegionAllocator::Block::offset) - 1;
        if (gap->offset < part.begin)
            gap = region.gaps.insert(gap, region.allocator.split(*gap, ByteCount{part.begin - gap->offset})) + 1;
        if (gap->range().end > part.end)
            region.gaps.insert(gap, region.allocator.split(*gap, ByteCount{part.size()}));
    }
}

bool BlockPool::commit_part(Region& region, ByteRange part, Ladder& ladder) {
    const driver::Memory memory = region.part(part);
    if (const Result<void> committed = source_->growable()->commit(memory); !committed) {
        ladder.source_said = committed.error().detail();
        return false;
    }
    try {
        const BiasedLock lock(mutex_);
        if (part.begin == region.memory.size) {
            region.grow(ByteCount{part.size()});
            region.memory.size += part.size();
        } else {
            const auto gap = std::ranges::lower_bound(region.gaps, part.begin, {}, &RegionAllocator::Block::offset);
            assert(gap != region.gaps.end() && gap->range() == part);
            const RegionAllocator::Block place = *gap;
            region.gaps.erase(gap);
            region.gap_bytes -= part.size();
            region.free(place);
        }
        ++reserves_;
        reserved_bytes_ += part.size();
        reserved_peak_bytes_ = std::max(reserved_peak_bytes_, reserved_bytes_);
        POLDER_LOG(memory, "space %u: a region grows by %" PRIu64 " bytes to %" PRIu64, options_.space.value,
                   part.size(), region.committed_bytes());
    } catch (const std::bad_alloc&) {
        source_->growable()->decommit(memory);
        throw;
    }
    return true;
}

// The index of the region that grows; makes the region if there is none. UINT32_MAX: the source has no addresses for it.
uint32_t BlockPool::growing_region(ByteCount addresses, Ladder& ladder) {
    {
        const BiasedLock lock(mutex_);
        for (uint32_t index = 0; index < regions_.size(); ++index)
            if (regions_[index] && regions_[index]->addresses != 0)
                return index;
    }
    const auto address = source_->growable()->reserve_addresses(addresses);
    if (!address) {
        ladder.source_said = address.error().detail();
        return UINT32_MAX;
    }
    uint32_t index = UINT32_MAX;
    const ScopeExit give_back{[&]() noexcept {
        if (index == UINT32_MAX)
            source_->growable()->release_addresses({*address, addresses.value});
    }};
    const BiasedLock lock(mutex_);
    index = add_region({*address, 0});
    regions_[index]->addresses = addresses.value;
    return index;
}

// Removes idle pages of up to `bytes_max` bytes (rounded up) from the pool, the largest holes first. Pages within the region become gaps; pages
// at its end make it smaller. Pages and gaps that overlap `kept` stay.
void BlockPool::remove_idle_pages(Region& region, ByteRange kept, uint64_t bytes_max, Removed& removed) {
    const Alignment page = source_->growable()->page();
    while (bytes_max != 0) {
        std::vector<ByteRange> chosen = idle_pages(region, kept, page);
        std::ranges::sort(chosen, std::greater{}, &ByteRange::size);
        size_t count = 0;
        for (uint64_t rest = bytes_max; count < std::min(chosen.size(), holes_max) && rest != 0; ++count) {
            ByteRange& pages = chosen[count];
            if (pages.size() > rest)
                pages.begin = pages.end - std::min(pages.size(), page.round_up(rest));
            rest -= std::min(rest, pages.size());
        }
        if (count == 0)
            return;
        chosen.resize(count);
        std::array<RegionAllocator::Block, holes_max> places;
        region.gaps.reserve(region.gaps.size() + count);
        removed.pages.reserve(removed.pages.size() + count);
        const size_t taken =
            region.allocator.take_parts(ByteCount{page.value}, std::span{places}.first(count), [&](ByteRange free) {
                const auto found = std::ranges::find_if(chosen, [&](ByteRange part) { return free.contains(part); });
                return found == chosen.end() ? ByteRange{} : *found;
            });
        for (const RegionAllocator::Block& place : std::span{places}.first(taken)) {
            const uint64_t bytes = place.size.value;
            region.gaps.insert(std::ranges::upper_bound(region.gaps, place.offset, {}, &RegionAllocator::Block::offset),
                               place);
            region.gap_bytes += bytes;
            reserved_bytes_ -= bytes;
            removed.pages.push_back(region.part(place.range()));
            bytes_max -= std::min(bytes_max, bytes);
        }
        cut_end(region, kept);
    }
}

// Removes gaps at the region's end from the region, except for those in `kept`, which get memory next.
void BlockPool::cut_end(Region& region, ByteRange kept) {
    while (!region.gaps.empty() && region.gaps.back().range().end == region.memory.size &&
           !region.gaps.back().range().overlaps(kept)) {
        const RegionAllocator::Block gap = region.gaps.back();
        region.gaps.pop_back();
        region.gap_bytes -= gap.size.value;
        region.memory.size -= gap.size.value;
        region.allocator.free(gap);
        region.allocator.shrink(gap.size);
    }
}

}  // namespace polder::memory
