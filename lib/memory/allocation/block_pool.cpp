#include "poison.h"
#include "residency/range_set.h"

#include <base/log.h>
#include <base/options.h>
#include <memory/block_pool.h>

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <utility>

namespace polder::memory {
namespace {

// Behind each block, so that an overrun does not reach the next one.
constexpr uint64_t red_zone_bytes = 128;
// Blocks taken back by one ordinary allocation; more come back than are ever taken.
constexpr uint32_t drained_at_most = 32;
// Smaller free ranges are not worth a system call.
constexpr ByteCount purged_at_least{uint64_t{64} << 10};

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
    char buffer[768];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return buffer;
}

// Parts of `range` before and behind `hole`.
std::pair<ByteRange, ByteRange> around(ByteRange range, ByteRange hole) {
    if (!range.overlaps(hole))
        return {range, {}};
    const ByteRange inner = range.intersect(hole);
    return {{range.begin, inner.begin}, {inner.end, range.end}};
}

} // namespace

struct BlockPool::Region {
    Region(driver::Memory reserved, Alignment granularity)
        : memory(reserved), allocator({reserved.address, ByteCount{reserved.size}, granularity}) {}

    [[nodiscard]] uint64_t cached() const { return allocator.free_bytes().value - clean.size_bytes(); }
    [[nodiscard]] driver::Memory part(ByteRange range) const {
        return {memory.address.plus(range.begin), range.size()};
    }

    driver::Memory memory;
    RegionAllocator allocator;
    // Free bytes that the system does not back with memory. Stays empty unless the source discards.
    RangeSet clean;
};

BlockPool::BlockPool(std::unique_ptr<RegionSource> source, const Options& options)
    : source_(std::move(source)), options_(options), poisons_(poisoning && options.space.is_host()),
      discards_(source_->discards()), limit_(options.limit.value) {}

BlockPool::~BlockPool() {
    for (uint32_t index = 0; index < regions_.size(); ++index)
        if (regions_[index])
            remove_region(index);
}

std::unique_ptr<BlockPool> BlockPool::of_host() {
    const ByteCount total = HostRegionSource::total();
    Options options;
    options.limit = total;
    if (const auto limit = options::memory_limit_bytes())
        options.limit = std::min(total, ByteCount{*limit});
    options.cache_max = std::max(options.cache_max, ByteCount{total.value / 16});
    return std::make_unique<BlockPool>(std::make_unique<HostRegionSource>(), options);
}

std::unique_ptr<BlockPool> BlockPool::of(driver::Device& device) {
    Options options;
    options.space = device.info().space;
    options.granularity = std::max(options.granularity, Alignment{device.info().base_address_alignment});
    return std::make_unique<BlockPool>(std::make_unique<DeviceRegionSource>(device), options);
}

// ---- allocation ----

Result<Block> BlockPool::allocate(ByteCount size, Alignment alignment, WhenFull when_full) {
    const uint64_t behind = poisons_ ? red_zone_bytes : 0;
    const Request request{size, ByteCount{size.value + behind}, alignment};
    if (request.size >= size) {
        Lock lock(mutex_);
        drain_at_most(drained_at_most);
        if (auto block = try_quickly(request))
            return *block;
    }
    return allocate_by_ladder(request, when_full);
}

Result<Block> BlockPool::allocate_by_ladder(const Request& request, WhenFull when_full) {
    for (Ladder ladder;; ++ladder.waited) {
        std::optional<driver::Timepoint> pending;
        {
            Lock lock(mutex_);
            if (auto block = try_hard(request, ladder))
                return *block;
            pending = when_full == WhenFull::wait ? oldest_deferred() : std::nullopt;
            if (!pending) {
                std::string told = report(request, ladder);
                POLDER_LOG(memory, "%s", told.c_str());
                return fail(Status::mem_object_allocation_failure, std::move(told));
            }
        }
        pending->queue->wait(pending->value);
    }
}

std::optional<Block> BlockPool::try_quickly(const Request& request) {
    if (!within_limit(request.size))
        return std::nullopt;
    return try_regions(request, RegionAllocator::Search::quick);
}

std::optional<Block> BlockPool::try_hard(const Request& request, Ladder& ladder) {
    drain_at_most(UINT32_MAX);
    if (request.size < request.asked || !within_limit(request.size))
        return std::nullopt;
    if (auto block = try_regions(request, RegionAllocator::Search::thorough))
        return block;
    if (auto block = grow(request, ladder))
        return block;
    return regroup(request, ladder);
}

bool BlockPool::within_limit(ByteCount size) const {
    const uint64_t held = live_bytes_ + deferred_bytes_;
    return held <= limit_ && size.value <= limit_ - held;
}

// Older regions first, so that newer ones fall empty and can be given back.
std::optional<Block> BlockPool::try_regions(const Request& request, RegionAllocator::Search search) {
    for (uint32_t index = 0; index < regions_.size(); ++index)
        if (regions_[index])
            if (auto block = try_region(index, request, search))
                return block;
    return std::nullopt;
}

std::optional<Block> BlockPool::try_region(uint32_t index, const Request& request, RegionAllocator::Search search) {
    Region& region = *regions_[index];
    const auto place = region.allocator.allocate(request.size, request.alignment, search);
    if (!place)
        return std::nullopt;
    const uint64_t bytes = place->size.value;
    if (discards_)
        cached_bytes_ -= bytes - region.clean.erase(place->range());
    live_bytes_ += bytes;
    live_peak_bytes_ = std::max(live_peak_bytes_, live_bytes_);
    ++live_blocks_;
    const Block block{region.memory.address.plus(place->offset), request.asked, index, *place};
    if (poisons_)
        unpoison(block.address, block.size);
    POLDER_LOG(memory, "space %u: allocate %" PRIu64 " bytes at 0x%" PRIx64, options_.space.value, block.size.value,
               block.address.value);
    return block;
}

// ---- regions ----

// Reserves as much as the source likes, else all that it has, else what the block needs.
std::optional<Block> BlockPool::grow(const Request& request, Ladder& ladder) {
    const uint64_t least = std::max<uint64_t>(request.size.value, 1);
    const uint64_t alignment = std::max(request.alignment, options_.granularity).value;
    const uint64_t with_padding = least + (alignment - options_.granularity.value);
    const uint64_t enough = std::max(least, with_padding);  // when the sum does not overflow
    const uint64_t preferred = source_->preferred_size(ByteCount{enough}, ByteCount{reserved_bytes_}).value;
    const uint64_t all = std::clamp(source_->available().value, enough, preferred);
    uint64_t tried = 0;
    for (const uint64_t size : {preferred, all, enough, least, std::max(least, least + alignment)})
        if (std::exchange(tried, size) != size)
            if (auto block = grow_by(ByteCount{size}, request, ladder))
                return block;
    return std::nullopt;
}

std::optional<Block> BlockPool::grow_by(ByteCount size, const Request& request, Ladder& ladder) {
    const auto memory = source_->reserve(size);
    if (!memory) {
        ladder.source_said = memory.error().detail();
        return std::nullopt;
    }
    const uint32_t index = add_region(*memory);
    auto block = try_region(index, request, RegionAllocator::Search::thorough);
    if (!block)  // large enough, but no address in it has the alignment
        remove_region(index);
    return block;
}

uint32_t BlockPool::add_region(driver::Memory memory) {
    auto region = std::make_unique<Region>(memory, options_.granularity);
    reserved_bytes_ += memory.size;
    if (discards_)
        region->allocator.for_each_free(ByteCount{1}, [&](ByteRange range) { region->clean.insert(range); });
    if (poisons_)
        poison(memory.address, ByteCount{memory.size});
    POLDER_LOG(memory, "space %u: reserve a region of %" PRIu64 " bytes at 0x%" PRIx64, options_.space.value,
               memory.size, memory.address.value);
    const auto hole = std::find(regions_.begin(), regions_.end(), nullptr);
    const auto index = static_cast<uint32_t>(hole - regions_.begin());
    if (hole == regions_.end())
        regions_.push_back(std::move(region));
    else
        *hole = std::move(region);
    return index;
}

void BlockPool::remove_region(uint32_t index) {
    const driver::Memory memory = regions_[index]->memory;
    if (discards_)
        cached_bytes_ -= regions_[index]->cached();
    reserved_bytes_ -= memory.size;
    regions_[index].reset();
    if (poisons_)
        unpoison(memory.address, ByteCount{memory.size});
    POLDER_LOG(memory, "space %u: give back a region of %" PRIu64 " bytes at 0x%" PRIx64, options_.space.value,
               memory.size, memory.address.value);
    source_->release(memory);
}

uint64_t BlockPool::remove_unused_regions() {
    const uint64_t before = reserved_bytes_;
    for (uint32_t index = 0; index < regions_.size(); ++index)
        if (regions_[index] && regions_[index]->allocator.is_unused())
            remove_region(index);
    return before - reserved_bytes_;
}

// Makes one region out of several unused ones, when that may help.
std::optional<Block> BlockPool::regroup(const Request& request, Ladder& ladder) {
    uint64_t unused = 0;
    for (const auto& region : regions_)
        if (region && region->allocator.is_unused() && region->memory.size < request.size.value)
            unused += region->memory.size;
    const uint64_t available = source_->available().value;
    if (unused == 0 || unused + available < request.size.value)
        return std::nullopt;
    ladder.trimmed_bytes += remove_unused_regions();
    return grow(request, ladder);
}

// ---- freeing ----

void BlockPool::free(const Block& block, driver::Waits after) {
    POLDER_LOG(memory, "space %u: free %" PRIu64 " bytes at 0x%" PRIx64 "%s", options_.space.value, block.size.value,
               block.address.value, after.empty() ? "" : " when its uses are complete");
    std::vector<driver::Timepoint> incomplete;
    for (const driver::Timepoint& timepoint : after)
        if (!timepoint.is_complete())
            incomplete.push_back(timepoint);

    Lock lock(mutex_);
    live_bytes_ -= block.place.size.value;
    --live_blocks_;
    if (incomplete.empty()) {
        take_back(block);
        return;
    }
    deferred_bytes_ += block.place.size.value;
    ++deferred_blocks_;
    const driver::Timepoint until = incomplete.back();
    incomplete.pop_back();
    defer(Deferred{block, until.value, deferred_number_++, std::move(incomplete)}, until);
}

// Puts the block among those that wait for the same queue.
void BlockPool::defer(Deferred entry, driver::Timepoint until) {
    entry.value = until.value;
    auto found = std::find_if(deferred_.begin(), deferred_.end(),
                              [&](const DeferredQueue& waiting) { return waiting.queue == until.queue; });
    if (found == deferred_.end())
        found = deferred_.insert(found, DeferredQueue{until.queue, {}});
    auto& blocks = found->blocks;
    const auto later = [](uint64_t value, const Deferred& other) { return value < other.value; };
    if (blocks.empty() || blocks.back().value <= entry.value)
        blocks.push_back(std::move(entry));
    else
        blocks.insert(std::upper_bound(blocks.begin(), blocks.end(), entry.value, later), std::move(entry));
}

void BlockPool::drain_at_most(uint32_t count) {
    if (deferred_blocks_ == 0)
        return;
    // By index: advance() may add a queue.
    for (size_t index = 0; index < deferred_.size(); ++index) {
        const uint64_t completed = deferred_[index].queue->completed();
        while (count > 0 && !deferred_[index].blocks.empty() && deferred_[index].blocks.front().value <= completed) {
            Deferred entry = std::move(deferred_[index].blocks.front());
            deferred_[index].blocks.pop_front();
            advance(std::move(entry));
            --count;
        }
    }
}

// One of the timepoints that the block waits for is complete.
void BlockPool::advance(Deferred entry) {
    while (!entry.afterwards.empty()) {
        const driver::Timepoint next = entry.afterwards.back();
        entry.afterwards.pop_back();
        if (!next.is_complete()) {
            defer(std::move(entry), next);
            return;
        }
    }
    deferred_bytes_ -= entry.block.place.size.value;
    --deferred_blocks_;
    take_back(entry.block);
}

std::optional<driver::Timepoint> BlockPool::oldest_deferred() const {
    std::optional<driver::Timepoint> oldest;
    uint64_t oldest_number = UINT64_MAX;
    for (const DeferredQueue& waiting : deferred_)
        if (!waiting.blocks.empty() && waiting.blocks.front().number < oldest_number) {
            oldest_number = waiting.blocks.front().number;
            oldest = driver::Timepoint{waiting.queue, waiting.blocks.front().value};
        }
    return oldest;
}

void BlockPool::take_back(const Block& block) {
    Region& region = *regions_[block.region];
    if (poisons_)
        poison(block.address, ByteCount{block.place.size.value});
    region.allocator.free(block.place);
    if (!discards_)
        return;
    cached_bytes_ += block.place.size.value;
    const uint64_t allowed = cache_allowed();
    if (cached_bytes_ > allowed && cached_bytes_ > cached_after_purge_bytes_ + allowed / 2)
        purge(block.place.size.value <= allowed ? &block : nullptr);
}

uint64_t BlockPool::cache_allowed() const {
    const uint64_t held = std::min(limit_, live_bytes_ + deferred_bytes_);
    return std::min(options_.cache_max.value, limit_ - held);
}

// Gives all that is free back to the system but the block that was freed last, which is the likeliest to be used
// again, and small ranges. Half of the cache's size must be freed before the next purge, which pays for this one.
void BlockPool::purge(const Block* keep) {
    for (uint32_t index = 0; index < regions_.size(); ++index) {
        if (!regions_[index])
            continue;
        const bool keeps = keep != nullptr && keep->region == index;
        if (!keeps && regions_[index]->allocator.is_unused())
            remove_region(index);
        else
            purge_region(*regions_[index], keeps ? keep->place.range() : ByteRange{});
    }
    cached_after_purge_bytes_ = cached_bytes_;
}

void BlockPool::purge_region(Region& region, ByteRange keep) {
    cached_bytes_ -= region.cached();
    region.allocator.for_each_free(purged_at_least, [&](ByteRange range) {
        const auto [before, behind] = around(range, keep);
        for (const ByteRange part : {before, behind}) {
            if (part.size() < purged_at_least.value)
                continue;
            region.clean.for_each_missing(part, [&](ByteRange warm) { source_->discard(region.part(warm)); });
            region.clean.insert(part);
        }
    });
    cached_bytes_ += region.cached();
}

void BlockPool::drain() {
    Lock lock(mutex_);
    drain_at_most(UINT32_MAX);
}

void BlockPool::trim() {
    Lock lock(mutex_);
    drain_at_most(UINT32_MAX);
    remove_unused_regions();
    if (discards_)
        purge(nullptr);
}

// ---- figures ----

void BlockPool::set_limit(ByteCount limit) {
    Lock lock(mutex_);
    limit_ = limit.value;
}

ByteCount BlockPool::limit() const {
    Lock lock(mutex_);
    return ByteCount{limit_};
}

BlockPool::Statistics BlockPool::statistics() const {
    Lock lock(mutex_);
    return count();
}

BlockPool::Statistics BlockPool::count() const {
    Statistics sum;
    sum.reserved = ByteCount{reserved_bytes_};
    sum.live = ByteCount{live_bytes_};
    sum.live_peak = ByteCount{live_peak_bytes_};
    sum.deferred = ByteCount{deferred_bytes_};
    sum.cached = ByteCount{cached_bytes_};
    sum.live_blocks = live_blocks_;
    sum.deferred_blocks = deferred_blocks_;
    for (const auto& region : regions_) {
        if (!region)
            continue;
        const auto of_region = region->allocator.statistics();
        sum.free.value += of_region.free.value;
        sum.largest_free = std::max(sum.largest_free, of_region.largest_free);
        sum.free_blocks += of_region.free_blocks;
        ++sum.regions;
    }
    return sum;
}

ByteCount BlockPool::free_bytes() const {
    Lock lock(mutex_);
    const Statistics now = count();
    // Where free memory has no backing, only what the system still has can really be used.
    const uint64_t in_pool = (discards_ ? now.cached.value : now.free.value) + now.deferred.value;
    const uint64_t possible = in_pool + source_->available().value;
    return ByteCount{std::min(possible, limit_ - std::min(limit_, now.live.value))};
}

std::string BlockPool::report(const Request& request, const Ladder& ladder) const {
    const Statistics now = count();
    const std::string limit = limit_ == UINT64_MAX ? "no limit" : text("limit %" PRIu64, limit_);
    std::string told =
        text("out of memory in space %u: asked for %" PRIu64 " bytes (alignment %" PRIu64 "); free %" PRIu64
             ", largest free block %" PRIu64 ", live %" PRIu64 " in %" PRIu64 " blocks, deferred %" PRIu64
             ", reserved %" PRIu64 " in %" PRIu64 " regions, %s, source has %" PRIu64,
             options_.space.value, request.asked.value, request.alignment.value, now.free.value, now.largest_free.value,
             now.live.value, now.live_blocks, now.deferred.value, now.reserved.value, now.regions, limit.c_str(),
             source_->available().value);
    told += text("; drained, waited for %" PRIu64 " deferred blocks, trimmed %" PRIu64 " bytes", ladder.waited,
                 ladder.trimmed_bytes);
    if (!within_limit(request.size))
        told += "; the limit does not allow more";
    else if (!ladder.source_said.empty())
        told += "; the source says: " + ladder.source_said;
    return told;
}

bool BlockPool::validate() const {
    Lock lock(mutex_);
    uint64_t reserved = 0, used = 0, cached = 0;
    for (const auto& region : regions_) {
        if (!region)
            continue;
        if (!region->allocator.validate())
            return false;
        const auto statistics = region->allocator.statistics();
        reserved += region->memory.size;
        used += statistics.capacity.value - statistics.free.value;
        cached += discards_ ? region->cached() : 0;
    }
    uint64_t waiting = 0;
    for (const DeferredQueue& queue : deferred_) {
        waiting += queue.blocks.size();
        if (!std::is_sorted(queue.blocks.begin(), queue.blocks.end(),
                            [](const Deferred& a, const Deferred& b) { return a.value < b.value; }))
            return false;
    }
    return reserved == reserved_bytes_ && used == live_bytes_ + deferred_bytes_ && cached == cached_bytes_ &&
           waiting == deferred_blocks_;
}

} // namespace polder::memory
