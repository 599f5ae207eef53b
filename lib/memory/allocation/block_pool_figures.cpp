// BlockPool: statistics, the report of a failed allocation, and the check of its invariants.
#include "block_pool_region.h"
#include "system_memory.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace polder::memory {
namespace {

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
    char buffer[768];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return buffer;
}

} // namespace

void BlockPool::set_limit(ByteCount limit) {
    const BiasedLock lock(mutex_);
    limit_ = limit.value;
}

ByteCount BlockPool::limit() const {
    const BiasedLock lock(mutex_);
    return ByteCount{limit_};
}

// Locks for one region at a time, so that no thread waits for the lock until all regions are counted.
BlockPool::Statistics BlockPool::statistics() const {
    Statistics sum;
    size_t regions = 0;
    const FrontCache::Held front = front_.held();
    {
        const BiasedLock lock(mutex_);
        sum.reserved_peak = ByteCount{reserved_peak_bytes_};
        sum.allocations = allocations_ + front.hits;
        sum.frees = sum.allocations - (live_blocks_ - std::min(live_blocks_, front.blocks));
        sum.hits = sum.allocations - std::min(sum.allocations, reserves_);
        sum.retries = retries_;
        sum.out_of_memory = out_of_memory_;
        sum.reserved = ByteCount{reserved_bytes_};
        sum.live = ByteCount{live_bytes_ - std::min(live_bytes_, front.bytes)};
        sum.live_peak = ByteCount{live_peak_bytes_};
        sum.deferred = ByteCount{deferred_bytes_};
        sum.cached = ByteCount{cached_bytes_};
        sum.live_blocks = live_blocks_ - std::min(live_blocks_, front.blocks);
        sum.deferred_blocks = pending_.size();
        regions = regions_.size();
    }
    for (size_t index = 0; index < regions; ++index) {
        const BiasedLock lock(mutex_);
        if (!regions_[index])
            continue;
        const RegionAllocator::Statistics of_region = regions_[index]->allocator.statistics();
        sum.free.value += of_region.free.value;
        if (of_region.used_blocks != 0)
            sum.inactive_split.value += of_region.free.value;
        sum.largest_free = std::max(sum.largest_free, of_region.largest_free);
        sum.free_blocks += of_region.free_blocks;
        ++sum.regions;
    }
    sum.free.value += front.bytes;
    sum.free_blocks += front.blocks;
    sum.inactive_split.value += front.bytes;
    return sum;
}

void BlockPool::reset_peak(Peak peak) {
    const BiasedLock lock(mutex_);
    if (peak == Peak::live)
        live_peak_bytes_ = live_bytes_;
    else
        reserved_peak_bytes_ = reserved_bytes_;
}

ByteCount BlockPool::free_bytes() const {
    const uint64_t available = source_->available().value;
    const BiasedLock lock(mutex_);
    // When free memory has no pages, the system must still have some for it, so only cached bytes count here. When the system counts
    // promises, it has counted all reserved memory already.
    const uint64_t free = reserved_bytes_ - (live_bytes_ - charged_bytes_) - deferred_bytes_;
    const uint64_t in_pool = (discards_ && !SystemMemory::promises_count() ? cached_bytes_ : free) + deferred_bytes_;
    return ByteCount{std::min(in_pool + available, limit_ - std::min(limit_, live_bytes_))};
}

ByteCount BlockPool::resident() const {
    std::vector<driver::Memory> regions;
    uint64_t bytes = 0;
    {
        const BiasedLock lock(mutex_);
        for (const auto& region : regions_)
            if (region)
                regions.push_back(region->memory);
        bytes = charged_bytes_;
        for (const auto& region : regions_)
            bytes -= region ? region->gap_bytes : 0;  // the loop below counts the gaps, which have no memory
    }
    for (const driver::Memory& region : regions)
        bytes += source_->resident(region).value;
    return ByteCount{bytes};
}

std::string BlockPool::report(const Request& request, const Ladder& ladder) const {
    const Statistics now = statistics();
    const uint64_t limit_bytes = limit().value;
    const std::string limit = limit_bytes == UINT64_MAX ? "no limit" : text("limit %" PRIu64, limit_bytes);
    std::string told =
        text("out of memory in space %u: asked for %" PRIu64 " bytes (alignment %" PRIu64 "); free %" PRIu64
             ", largest free block %" PRIu64 ", live %" PRIu64 " in %" PRIu64 " blocks, deferred %" PRIu64
             ", reserved %" PRIu64 " in %" PRIu64 " regions, %s, source has %" PRIu64,
             options_.space.value, request.asked.value, request.alignment.value, now.free.value, now.largest_free.value,
             now.live.value, now.live_blocks, now.deferred.value, now.reserved.value, now.regions, limit.c_str(),
             source_->available().value);
    told += text("; drained, waited for %" PRIu64 " deferred blocks, trimmed %" PRIu64 " bytes", ladder.waited,
                 ladder.trimmed_bytes);
    const uint64_t held = now.live.value + now.deferred.value;
    if (request.size < request.asked || limit_bytes < held || request.size.value > limit_bytes - held)
        told += "; the limit does not allow more";
    else if (!ladder.source_said.empty())
        told += "; the source says: " + ladder.source_said;
    return told;
}

bool BlockPool::validate() const {
    const BiasedLock lock(mutex_);
    uint64_t reserved = 0, used = 0, cached = 0, pending = 0;
    for (const auto& region : regions_) {
        if (!region)
            continue;
        if (!region->allocator.validate())
            return false;
        const auto statistics = region->allocator.statistics();
        uint64_t gaps = 0;
        for (const RegionAllocator::Block& gap : region->gaps)
            gaps += gap.size.value;
        if (gaps != region->gap_bytes || !std::ranges::is_sorted(region->gaps, {}, &RegionAllocator::Block::offset))
            return false;
        reserved += region->committed_bytes();
        used -= gaps;
        pending += region->pending_bytes;
        used += statistics.capacity.value - statistics.free.value;
        cached += discards_ ? region->cached() : 0;
    }
    return reserved == reserved_bytes_ && used == live_bytes_ - charged_bytes_ + deferred_bytes_ &&
           cached == cached_bytes_ && pending == deferred_bytes_ && pending_.validate();
}

}  // namespace polder::memory
