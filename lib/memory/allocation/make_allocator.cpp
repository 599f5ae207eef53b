#include "adaptive_pins.h"
#include "host_pins.h"
#include "trace/recording_allocator.h"

#include <base/options.h>
#include <memory/allocation_policy.h>
#include <memory/block_pool.h>
#include <memory/bucket_allocator.h>
#include <memory/caching_allocator.h>

#include <algorithm>

namespace polder::memory {

std::unique_ptr<Allocator> make_allocator(const AllocationPolicy& policy, std::unique_ptr<RegionSource> source,
                                          const AllocatorOptions& options) {
    switch (policy.backend) {
    case AllocationPolicy::Backend::caching:
        return std::make_unique<CachingAllocator>(std::move(source), policy, options);
    case AllocationPolicy::Backend::bucket:
        return std::make_unique<BucketAllocator>(std::move(source), policy, options);
    case AllocationPolicy::Backend::bufalloc: break;
    }
    return std::make_unique<BlockPool>(std::move(source), options);
}

namespace {

// The page size of regions that grow; 0 when the source has none. Calls through the interface, because sources make `page` private.
uint64_t page_of(RegionSource& source) {
    GrowableRegions* const regions = source.growable();
    return regions ? regions->page().value : 0;
}

// The same as make_allocator. With POLDER_TRACE, the calls of the allocator and of its source are recorded.
std::unique_ptr<Allocator> make_recorded(const AllocationPolicy& policy, std::unique_ptr<RegionSource> source,
                                         const AllocatorOptions& options, ByteCount total) {
    if (!trace::enabled())
        return make_allocator(policy, std::move(source), options);
    trace::Fields fields;
    fields.kind = trace::Kind::space;
    fields.space = options.space;
    fields.size = std::min(total, options.limit).value;
    fields.value = page_of(*source);
    trace::record(fields);
    return std::make_unique<trace::RecordingAllocator>(
        make_allocator(policy, std::make_unique<trace::RecordingSource>(std::move(source), options.space), options),
        options.space);
}

}  // namespace

ByteCount host_memory_limit(const driver::Device* host_device) {
    ByteCount limit = HostRegionSource::total();
    // The host device's memory size takes the process's control groups into account.
    if (host_device && host_device->info().memory_bytes != 0)
        limit = std::min(limit, ByteCount{host_device->info().memory_bytes});
    if (const auto wanted = options::memory_limit_bytes())
        limit = std::min(limit, ByteCount{*wanted});
    return limit;
}

std::unique_ptr<Allocator> make_host_allocator(const AllocationPolicy& policy, const driver::Device* host_device,
                                               const PinsOfHost& pins) {
    const ByteCount total = HostRegionSource::total();
    AllocatorOptions options;
    options.limit = host_memory_limit(host_device);
    options.cache_max = std::max(options.cache_max, ByteCount{total.value / 16});
    options.spreads_in_pages = true;
    std::unique_ptr<RegionSource> source;
    if (pins.always)
        source = std::make_unique<PinnedRegionSource>(*pins.always);
    else if (pins.by_use)
        source = std::make_unique<AdaptiveRegionSource>(*pins.by_use);
    else
        source = std::make_unique<HostRegionSource>();
    return make_recorded(policy, std::move(source), options, total);
}

std::unique_ptr<Allocator> make_device_allocator(const AllocationPolicy& policy, driver::Device& device) {
    AllocatorOptions options;
    options.space = device.info().space;
    options.granularity = std::max(options.granularity, Alignment{device.info().base_address_alignment});
    options.grows_ahead = policy.grow_ahead;
    return make_recorded(policy, std::make_unique<DeviceRegionSource>(device), options,
                         ByteCount{device.info().memory_bytes});
}

}  // namespace polder::memory
