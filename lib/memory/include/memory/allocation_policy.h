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
    // One value for each power of two from 1 MiB on. The first one also holds for smaller sizes, the last one for larger sizes.
    using Divisions = std::array<uint32_t, 17>;

    Backend backend = Backend::bufalloc;
    // caching: blocks of this size or larger are not split.
    ByteCount max_split_size{unlimited};
    // caching: into how many steps the range between two powers of two is divided; sizes are rounded up to a step. 0 or 1: no steps.
    Divisions roundup_power2_divisions{};
    // caching: unused blocks are released before more than this part (0 to 1) of the allowed memory is reserved; 0: never.
    double garbage_collection_threshold = 0;
    // caching: segments grow in place, if the source can reserve addresses without memory.
    bool expandable_segments = false;
    // bufalloc: where a device takes long to make memory, a thread makes the next step before it is needed.
    bool grow_ahead = true;
    // bucket: at most so many bytes of free blocks are kept.
    std::optional<ByteCount> max_bytes;
    // bucket: free blocks are kept, also when memory is trimmed, until a request needs their memory.
    bool persistent = false;
    // For host memory, with any backend: when it is registered with the devices that copy faster from pinned memory.
    enum class Pinned : uint8_t {
        never,
        by_use,  // memory that is copied repeatedly (adaptive_pins.h)
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
// Parses the settings in `text`. Malformed parts leave the values of `base`. The warning names `variable`.
[[nodiscard]] ParsedPolicy parse_policy(std::string_view text, std::string_view variable,
                                        const AllocationPolicy& base = {});

// Divides the parameters of a device into those of its allocation policy and those of the driver.
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
    // How many free bytes to keep when the system could use them for other purposes (RegionSource::discards).
    ByteCount cache_max{uint64_t{256} << 20};
    Alignment granularity{128};
    // Where GrowableRegions::is_slow.
    bool grows_ahead = false;
    // Large blocks begin at different addresses modulo 4096, where there is room (decision 277). For memory that kernels on processors use.
    bool spreads_in_pages = false;
};
[[nodiscard]] std::unique_ptr<Allocator>
make_allocator(const AllocationPolicy& policy, std::unique_ptr<RegionSource> source, const AllocatorOptions& options);
// The registration of host memory with devices: at most one of these is set.
struct PinsOfHost {
    HostPins* always = nullptr;
    AdaptivePins* by_use = nullptr;
};
// The limit of host memory: POCL_MEMORY_LIMIT, otherwise the memory of the process's control groups or of the machine.
[[nodiscard]] ByteCount host_memory_limit(const driver::Device* host_device);
[[nodiscard]] std::unique_ptr<Allocator> make_host_allocator(const AllocationPolicy& policy,
                                                             const driver::Device* host_device = nullptr,
                                                             const PinsOfHost& pins = {});
[[nodiscard]] std::unique_ptr<Allocator> make_device_allocator(const AllocationPolicy& policy, driver::Device& device);

}  // namespace polder::memory
