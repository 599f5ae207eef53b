// The pool of one memory space: gives out blocks of it, carved by bufalloc out of large regions, and takes
// them back once the work that uses them is complete.
//
// A freed block waits ("deferred") for its timepoints before it is used again. When there is no room, allocate
// climbs a ladder, and reports every rung when the last one fails:
//   1. take back the deferred blocks whose timepoints are complete, search every region thoroughly;
//   2. reserve another region;
//   3. give unused regions back to the source and reserve one that is large enough ("trim");
//   4. wait for deferred blocks, the oldest first, trying again after each (WhenFull::wait only).
//
// Memory that costs the system something while it is free (RegionSource::discards) is kept up to
// Options::cache_max bytes, at times half as much more, so that a program that creates and releases large buffers
// meets warm pages. Beyond that everything free goes back but the block that was freed last.
//
// Bounds: allocate and free are O(1) and make no system call while a region has room; free sorts a block among
// those deferred on the same queue, O(1) when they come in order of their values. Threads: any function, any thread;
// a device's timeline is waited for without the lock. Sizes are bytes, exact.
#pragma once

#include <base/mutex.h>
#include <bufalloc/region_allocator.h>
#include <memory/region_source.h>

#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <polder/driver.h>
#include <polder/result.h>
#include <polder/types.h>
#include <string>
#include <vector>

namespace polder::memory {

// A used block. Whoever allocated it gives it back to the same pool, once.
struct Block {
    DeviceAddress address;
    ByteCount size;  // as asked for
    uint32_t region = 0;
    RegionAllocator::Block place;
};

enum class WhenFull : uint8_t {
    wait,  // for work in flight whose memory has been freed
    fail,
};

class BlockPool {
public:
    struct Options {
        SpaceId space;  // for messages; host memory is poisoned for the address sanitizer while free
        // Blocks in use and deferred together never exceed it.
        ByteCount limit{std::numeric_limits<uint64_t>::max()};
        ByteCount cache_max{uint64_t{256} << 20};
        Alignment granularity{128};
    };

    struct Statistics {
        ByteCount reserved;      // in regions
        ByteCount live;          // in blocks not freed yet
        ByteCount live_peak;
        ByteCount deferred;      // freed, waiting for their timepoints
        ByteCount free;          // in regions
        ByteCount largest_free;  // one block within a region
        ByteCount cached;        // free in regions but still backed by the system; 0 unless the source discards
        uint64_t live_blocks = 0;
        uint64_t deferred_blocks = 0;
        uint64_t free_blocks = 0;
        uint64_t regions = 0;
    };

    BlockPool(std::unique_ptr<RegionSource> source, const Options& options);
    // No block is in use, by a program or a device. Returns all regions.
    ~BlockPool();
    BlockPool(const BlockPool&) = delete;
    BlockPool& operator=(const BlockPool&) = delete;

    // Host memory, limited by POCL_MEMORY_LIMIT, else by what the machine has.
    [[nodiscard]] static std::unique_ptr<BlockPool> of_host();
    [[nodiscard]] static std::unique_ptr<BlockPool> of(driver::Device& device);

    // A size of 0 counts as 1. mem_object_allocation_failure with a report of all rungs when there is no room.
    [[nodiscard]] Result<Block> allocate(ByteCount size, Alignment alignment, WhenFull when_full = WhenFull::wait);
    // The block may be used again when all of `after` is complete.
    void free(const Block& block, driver::Waits after);

    // Takes back deferred blocks whose timepoints are complete.
    void drain();
    // Drains, and gives all unused memory back to the source.
    void trim();

    void set_limit(ByteCount limit);
    [[nodiscard]] ByteCount limit() const;
    [[nodiscard]] Statistics statistics() const;
    // An honest figure of what new blocks could still get, all together, once deferred ones are back.
    [[nodiscard]] ByteCount free_bytes() const;

    // Checks every invariant; for tests.
    [[nodiscard]] bool validate() const;

private:
    struct Region;
    struct Deferred {
        Block block;
        uint64_t value = 0;                        // of the queue it stands at
        uint64_t number = 0;                       // order of being freed
        std::vector<driver::Timepoint> afterwards;  // what it waits for next
    };
    // In ascending order of their values.
    struct DeferredQueue {
        driver::Queue* queue = nullptr;
        std::deque<Deferred> blocks;
    };
    struct Request {
        ByteCount asked;
        ByteCount size;  // with what the sanitizer needs behind it
        Alignment alignment;
    };
    // What the rungs of one failing allocation have done.
    struct Ladder {
        uint64_t waited = 0;
        uint64_t trimmed_bytes = 0;
        std::string source_said;
    };

    [[nodiscard]] std::optional<Block> try_quickly(const Request& request) POLDER_REQUIRES(mutex_);
    [[nodiscard]] std::optional<Block> try_hard(const Request& request, Ladder& ladder) POLDER_REQUIRES(mutex_);
    [[nodiscard]] std::optional<Block> try_regions(const Request& request, RegionAllocator::Search search)
        POLDER_REQUIRES(mutex_);
    [[nodiscard]] std::optional<Block> try_region(uint32_t index, const Request& request,
                                                  RegionAllocator::Search search) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Result<Block> allocate_by_ladder(const Request& request, WhenFull when_full);
    [[nodiscard]] bool within_limit(ByteCount size) const POLDER_REQUIRES(mutex_);
    [[nodiscard]] std::optional<Block> grow(const Request& request, Ladder& ladder) POLDER_REQUIRES(mutex_);
    [[nodiscard]] std::optional<Block> grow_by(ByteCount size, const Request& request, Ladder& ladder)
        POLDER_REQUIRES(mutex_);
    [[nodiscard]] uint32_t add_region(driver::Memory memory) POLDER_REQUIRES(mutex_);
    void remove_region(uint32_t index) POLDER_REQUIRES(mutex_);
    [[nodiscard]] std::optional<Block> regroup(const Request& request, Ladder& ladder) POLDER_REQUIRES(mutex_);
    uint64_t remove_unused_regions() POLDER_REQUIRES(mutex_);

    void defer(Deferred entry, driver::Timepoint until) POLDER_REQUIRES(mutex_);
    void drain_at_most(uint32_t count) POLDER_REQUIRES(mutex_);
    void advance(Deferred entry) POLDER_REQUIRES(mutex_);
    [[nodiscard]] std::optional<driver::Timepoint> oldest_deferred() const POLDER_REQUIRES(mutex_);

    void take_back(const Block& block) POLDER_REQUIRES(mutex_);
    [[nodiscard]] uint64_t cache_allowed() const POLDER_REQUIRES(mutex_);
    void purge(const Block* keep) POLDER_REQUIRES(mutex_);
    void purge_region(Region& region, ByteRange keep) POLDER_REQUIRES(mutex_);

    [[nodiscard]] Statistics count() const POLDER_REQUIRES(mutex_);
    [[nodiscard]] std::string report(const Request& request, const Ladder& ladder) const POLDER_REQUIRES(mutex_);

    const std::unique_ptr<RegionSource> source_;
    const Options options_;
    const bool poisons_;
    const bool discards_;

    mutable Mutex mutex_;
    // By index as in Block::region; null where a region has been given back.
    std::vector<std::unique_ptr<Region>> regions_ POLDER_GUARDED_BY(mutex_);
    std::vector<DeferredQueue> deferred_ POLDER_GUARDED_BY(mutex_);
    uint64_t limit_ POLDER_GUARDED_BY(mutex_);
    uint64_t reserved_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t live_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t live_peak_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t live_blocks_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t deferred_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t deferred_blocks_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t deferred_number_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t cached_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t cached_after_purge_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
};

} // namespace polder::memory
