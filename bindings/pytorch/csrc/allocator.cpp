// The allocators that PyTorch calls: c10::DeviceAllocator for device memory, at::HostAllocator for pinned memory. Thin: memory.h
// does the work. The context of a DataPtr is the address itself, which raw_allocate needs.
#include "memory.h"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

namespace torch_opencl {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

void delete_memory(void* address) { free_memory(address); }

Stat stat_of(const Counts& counts) {
    Stat stat;
    stat.current = counts.current;
    stat.peak = counts.peak;
    stat.allocated = counts.added;
    stat.freed = counts.removed;
    return stat;
}

// For figures of which Polder reports only the current value and the peak.
Stat stat_of(uint64_t current, uint64_t peak) {
    Stat stat;
    stat.current = static_cast<int64_t>(current);
    stat.peak = static_cast<int64_t>(peak);
    return stat;
}

template <typename Array>
void set(Array& stats, const Stat& stat) {
    stats[static_cast<size_t>(StatType::AGGREGATE)] = stat;
}

class DeviceMemory final : public c10::DeviceAllocator {
public:
    c10::DataPtr allocate(size_t bytes) override {
        const int index = current_device();
        const c10::Device device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index));
        void* const address = bytes == 0 ? nullptr : allocate_memory(index, bytes);
        return {address, address, &delete_memory, device};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &delete_memory; }

    void copy_data(void* target, const void* source, size_t bytes) const override {
        if (bytes == 0)
            return;
        const int to = device_of_address(target);
        const int from = device_of_address(source);
        TORCH_CHECK(to >= 0 && from >= 0, "opencl: copy_data copies between allocations of devices");
        if (to == from)
            copy_on_device(to, target, source, bytes);
        else
            copy_between(to, target, from, source, bytes);
    }

    bool initialized() override { return Platform::is_initialized(); }
    void emptyCache(c10::MempoolId_t) override {
        if (Platform::is_initialized())
            trim_memory();
    }
    void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
        if (data.get())
            use_on_stream(data.get(), queue_of(stream));
    }

    DeviceStats getDeviceStats(c10::DeviceIndex device) override {
        const MemoryCounts counts = memory_counts(device);
        DeviceStats stats;
        set(stats.allocation, stat_of(counts.allocations));
        set(stats.active, stat_of(counts.allocations));
        set(stats.requested_bytes, stat_of(counts.requested));
        set(stats.allocated_bytes, stat_of(counts.requested));
        set(stats.active_bytes, stat_of(counts.requested));
        set(stats.reserved_bytes, stat_of(counts.requested));
        stats.num_ooms = counts.out_of_memory;
        stats.num_alloc_retries = counts.retries;
        stats.num_device_alloc = counts.from_implementation.added;
        stats.num_device_free = counts.from_implementation.removed;
        cl_memory_statistics_polder polder{};
        if (implementation_statistics(device, &polder)) {
            set(stats.segment, stat_of(polder.regions, polder.regions));
            set(stats.reserved_bytes, stat_of(polder.reserved_bytes, polder.reserved_peak_bytes));
            set(stats.inactive_split_bytes, stat_of(polder.inactive_split_bytes, polder.inactive_split_bytes));
            stats.num_alloc_retries = static_cast<int64_t>(polder.retries);
        }
        return stats;
    }
    void resetAccumulatedStats(c10::DeviceIndex device) override { reset_counts(device, false); }
    void resetPeakStats(c10::DeviceIndex device) override {
        reset_counts(device, true);
        const Device& of = Platform::get().device(device);
        if (Platform::get().functions().reset_peaks)
            check(Platform::get().functions().reset_peaks(
                      of.context, of.space, CL_MEMORY_PEAK_ALLOCATED_POLDER | CL_MEMORY_PEAK_RESERVED_POLDER),
                  "clResetMemoryPeaksPOLDER");
    }
    // Free and total bytes.
    std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
        const size_t total = Platform::get().device(device).memory_bytes;
        const auto used = static_cast<size_t>(memory_counts(device).requested.current);
        return {used < total ? total - used : 0, total};
    }
};

void delete_pinned(void* address) { free_pinned(address); }

class PinnedMemory final : public at::HostAllocator {
public:
    c10::DataPtr allocate(size_t bytes) override {
        void* const address = bytes == 0 ? nullptr : allocate_pinned(bytes);
        return {address, address, &delete_pinned, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &delete_pinned; }
    void copy_data(void* target, const void* source, size_t bytes) const override {
        std::memcpy(target, source, bytes);
    }
    // A release waits for the commands that use the memory (memory.h).
    bool record_event(void* address, void*, c10::Stream) override { return is_pinned(address); }
    void empty_cache() override {}
    // Released memory is not kept, so that all is active.
    at::HostStats get_stats() override {
        at::HostStats stats;
        if (!Platform::is_initialized())
            return stats;
        const PinnedCounts counts = pinned_counts();
        stats.active_requests = stats.allocations = stat_of(counts.allocations);
        stats.active_bytes = stats.allocated_bytes = stat_of(counts.requested);
        stats.num_host_alloc = counts.allocations.added;
        stats.num_host_free = counts.allocations.removed;
        return stats;
    }
    void reset_accumulated_stats() override {
        if (Platform::is_initialized())
            reset_pinned_counts(false);
    }
    void reset_peak_stats() override {
        if (Platform::is_initialized())
            reset_pinned_counts(true);
    }
};

DeviceMemory device_memory;
PinnedMemory pinned_memory;

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &device_memory);
const struct RegisterPinned {
    RegisterPinned() { at::setHostAllocator(at::kPrivateUse1, &pinned_memory); }
} register_pinned;

}  // namespace
}  // namespace torch_opencl
