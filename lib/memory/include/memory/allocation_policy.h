// AllocationPolicy: which allocator a memory space has, and its settings.
//
// Read from POLDER_ALLOC_CONF, or from POCL_<DRIVER><i>_PARAMETERS for one device. Keys and meanings are those of
// PyTorch's PYTORCH_CUDA_ALLOC_CONF (https://pytorch.org/docs/stable/notes/cuda.html, "Optimizing memory usage"), as
// "key:value" or "key=value", separated by commas. A value. Sizes are bytes.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <polder/driver.h>
#include <polder/types.h>
#include <string>
#include <string_view>

namespace polder::memory {

class Allocator;
class AdaptivePins;
class HostPins;
class RegionSource;

struct AllocationPolicy {
    enum class Backend : uint8_t {
        bufalloc,  // BlockPool (block_pool.h)
        caching,  // CachingAllocator (caching_allocator.h)
        bucket,  // BucketAllocator (bucket_allocator.h)
    };
    static constexpr uint64_t unlimited = std::numeric_limits<uint64_t>::max();
    // One value for each power of two from 1 MiB on; the first also holds below, the last above.
    using Divisions = std::array<uint32_t, 17>;

    Backend backend = Backend::bufalloc;
    // caching: blocks from here on are not split.
    ByteCount max_split_size{unlimited};
    // caching: steps between two powers of two to which sizes are rounded up; 0 or 1: none.
    Divisions roundup_power2_divisions{};
    // caching: the part of the memory from which on unused blocks are given back; 0: never.
    double garbage_collection_threshold = 0;
    // caching: segments grow where the source has addresses without memory behind them.
    bool expandable_segments = false;
    // bucket: free blocks are kept up to so many bytes.
    std::optional<ByteCount> max_bytes;
    // bucket: free blocks are kept, also when memory is trimmed, as long as no request needs their memory.
    bool persistent = false;
    // Host memory, any backend: when it is registered with the devices that copy faster from pinned memory.
    enum class Pinned : uint8_t {
        never,
        by_use,  // what is copied again and again (adaptive_pins.h)
        always,  // whole regions, from the beginning (host_pins.h)
    };
    Pinned pinned = Pinned::by_use;

    // `size` rounded up to a step of its power of two, or as it is when there are no steps.
    [[nodiscard]] uint64_t round_to_division(uint64_t size) const;
};

struct ParsedPolicy {
    AllocationPolicy policy;
    std::string warning;  // empty: everything was understood
};
// Malformed parts leave what `base` says. `variable` is named in the warning.
[[nodiscard]] ParsedPolicy parse_policy(std::string_view text, std::string_view variable,
                                        const AllocationPolicy& base = {});

// Divides the parameters of a device into those of its policy and the rest, which are the driver's.
struct SplitParameters {
    std::string policy;
    std::string driver;
};
[[nodiscard]] SplitParameters split_parameters(std::string_view parameters);

[[nodiscard]] std::string_view name_of(AllocationPolicy::Backend backend);

// --- allocators ---

struct AllocatorOptions {
    SpaceId space;  // for messages
    // Blocks in use and pending together never exceed it.
    ByteCount limit{AllocationPolicy::unlimited};
    // Free memory to keep, where that costs the system something (RegionSource::discards).
    ByteCount cache_max{uint64_t{256} << 20};
    Alignment granularity{128};
};
[[nodiscard]] std::unique_ptr<Allocator>
make_allocator(const AllocationPolicy& policy, std::unique_ptr<RegionSource> source, const AllocatorOptions& options);
// Its regions are listed in one of these, or in none.
struct PinsOfHost {
    HostPins* always = nullptr;
    AdaptivePins* by_use = nullptr;
};
// What host memory is limited to: POCL_MEMORY_LIMIT, else what the process's control groups and the machine have.
[[nodiscard]] ByteCount host_memory_limit(const driver::Device* host_device);
[[nodiscard]] std::unique_ptr<Allocator> make_host_allocator(const AllocationPolicy& policy,
                                                             const driver::Device* host_device = nullptr,
                                                             const PinsOfHost& pins = {});
[[nodiscard]] std::unique_ptr<Allocator> make_device_allocator(const AllocationPolicy& policy, driver::Device& device);

}  // namespace polder::memory
