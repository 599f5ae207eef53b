// BlockPool: the default allocator of a memory space. It allocates blocks in large regions by bufalloc.
//
// Memory is stream-ordered (see lease.h). A freed block that commands in flight still use is *pending*: a request for
// the same queue can use it at once, other requests when its timepoints are complete. When there is no room, a request
// waits for its turn and tries these steps; a failure reports all of them:
//   1. free the pending blocks that are complete, search every region thoroughly, then together with the pending blocks of the consumer's queue;
//   2. reserve another region (a device's consumer first takes a pending block of another queue when much is pending);
//   3. release unused regions to the source and reserve one that is large enough ("trim");
//   4. for a consumer on a device: merge pending blocks and free memory; the consumer's queue waits for them;
//   5. wait for pending blocks, the oldest first, then for what step 4 has merged, trying again after each (WhenFull::wait only).
// Between steps 4 and 5 the domain moves blocks together (open_hole; domain_compact.cpp), then evicts other storages
// (domain_reserve.cpp).
// Requests that wait are served first come, first served, and no later request is served before them. So a request waits only for
// memory that was freed before, or that earlier requests are using now.
//
// When the source can give addresses memory part by part (RegionSource::growable), and does not need free memory
// back (RegionSource::discards is false), there is one region. It grows where the fewest pages are missing, and releases idle pages of
// its holes for that (block_pool_growth.cpp). Where the source takes long for that (GrowableRegions::is_slow), a thread of
// the pool lets the region grow before a request finds it full (block_pool_ahead.cpp).
//
// When the system could use free memory for other purposes (RegionSource::discards), up to Options::cache_max bytes are
// kept (at times up to 1.5 times as much), so that a program that creates and releases large buffers
// gets pages that are already mapped. Beyond that, all free memory is returned except for the block that was freed last. Free memory is also returned
// when it exceeds the limit together with the memory in use, except for 1 MiB and ranges below 64 KiB.
//
// After threads have waited for the pool's lock a few times, small blocks use a front cache (front_cache.h).
//
// Bounds: lease and free are O(1) and make no system call while a region has room and the cache is not exceeded; free
// needs no memory. Threads: any thread may call any function. No system call and no wait happens under the pool's
// lock. Sizes are bytes, exact.
#pragma once

#include <base/biased_mutex.h>
#include <bufalloc/region_allocator.h>
#include <memory/allocation_policy.h>
#include <memory/allocator.h>
#include <memory/front_cache.h>
#include <memory/lease.h>
#include <memory/pending_blocks.h>
#include <memory/region_source.h>
#include <memory/turns.h>

#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <polder/driver.h>
#include <polder/result.h>
#include <polder/types.h>
#include <span>
#include <string>
#include <vector>

namespace polder::memory {

class AheadThread;

class BlockPool final : public Allocator {
public:
    // In builds with the address sanitizer, free host memory is poisoned.
    using Options = AllocatorOptions;

    BlockPool(std::unique_ptr<RegionSource> source, const Options& options);
    // Precondition: no block is in use, also not by commands in flight. Releases all regions.
    ~BlockPool() override;
    BlockPool(const BlockPool&) = delete;
    BlockPool& operator=(const BlockPool&) = delete;

    using Allocator::lease;
    [[nodiscard]] Result<void> lease(std::span<const LeaseRequest> requests, const LeaseTerms& terms,
                                     std::span<Lease> leases) override;
    void free_after(const Block& block, Timepoints&& after) noexcept override;
    [[nodiscard]] bool charge(ByteCount bytes) override;
    void discharge(ByteCount bytes) noexcept override;
    void drain() override;
    void trim() override;
    [[nodiscard]] bool open_hole(const LeaseRequest& request, std::span<const Block> movable,
                                 std::vector<uint32_t>& to_move) override;
    void close_hole() noexcept override;

    void set_limit(ByteCount limit) override;
    [[nodiscard]] ByteCount limit() const override;
    [[nodiscard]] Statistics statistics() const override;
    void reset_peak(Peak peak) override;
    [[nodiscard]] ByteCount resident() const override;
    [[nodiscard]] ByteCount free_bytes() const override;
    [[nodiscard]] bool validate() const override;
    // Returns when growth that was requested ahead of need is over; for tests.
    void wait_for_growth_ahead();

private:
    struct Region;
    // Memory that was removed from the pool, and is to be released to the source without the lock.
    struct Removed {
        std::unique_ptr<Region> regions;  // linked
        std::vector<driver::Memory> pages;  // of regions that grow
    };
    struct Request {
        ByteCount asked;
        ByteCount size;  // in sanitizer builds, with the bytes after the block
        Alignment alignment;
        LeaseTerms terms;
    };
    // What the steps of one allocation have done, for the report when it fails.
    struct Ladder {
        uint64_t waited = 0;
        uint64_t trimmed_bytes = 0;
        std::string source_said;
    };
    using Search = RegionAllocator::Search;

    [[nodiscard]] Request full(const LeaseRequest& request, const LeaseTerms& terms) const;
    [[nodiscard]] bool lease_from_front(const LeaseRequest& request, Lease& leased);
    [[nodiscard]] bool lease_quickly(std::span<const LeaseRequest> requests, const LeaseTerms& terms,
                                     std::span<Lease> leases);
    [[nodiscard]] Result<void> lease_by_ladder(std::span<const LeaseRequest> requests, const LeaseTerms& terms,
                                               Tried tried, std::span<Lease> leases);
    [[nodiscard]] bool lease_anew(std::span<const LeaseRequest> requests, const LeaseTerms& terms,
                                  std::span<Lease> leases);
    // Leases all of the requests or none.
    [[nodiscard]] bool try_all(std::span<const LeaseRequest> requests, const LeaseTerms& terms, Search search,
                               std::span<Lease> leases) POLDER_REQUIRES(mutex_);
    // Tries all steps, with the turn.
    [[nodiscard]] Result<void> climb(const Request& request, Lease& leased) POLDER_EXCLUDES(mutex_);
    // Tries the steps that do not wait.
    [[nodiscard]] bool try_steps(const Request& request, Ladder& ladder, Lease& leased) POLDER_EXCLUDES(mutex_);

    // --- places for a block; false: there is none ---
    [[nodiscard]] bool try_pool(const Request& request, Search search, Lease& leased) POLDER_REQUIRES(mutex_);
    [[nodiscard]] static bool may_have_room(const Region& region, const Request& request, Search search);
    [[nodiscard]] bool try_region(uint32_t index, const Request& request, Search search, Lease& leased)
        POLDER_REQUIRES(mutex_);
    void take_state(Region& region, const RegionAllocator::Block& place, Lease& leased) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool reuse_of_queue(const Request& request, Lease& leased) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool reuse_of_any_queue(const Request& request, Lease& leased) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool merge_pending(const Request& request, Lease& leased) POLDER_REQUIRES(mutex_);
    void merge_pending(uint32_t region, ByteRange within = {0, UINT64_MAX}) POLDER_REQUIRES(mutex_);
    [[nodiscard]] std::optional<driver::Timepoint> oldest_in_flight() const POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool within_limit(ByteCount size) const POLDER_REQUIRES(mutex_);
    void count_live(uint64_t bytes) POLDER_REQUIRES(mutex_);
    void reuse(const Request& request, Lease& leased) POLDER_REQUIRES(mutex_);

    // --- regions; called with the turn, without the lock ---
    [[nodiscard]] bool grow(const Request& request, Ladder& ladder, Lease& leased) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] bool grow_by(ByteCount size, const Request& request, Ladder& ladder, Lease& leased)
        POLDER_EXCLUDES(mutex_);
    [[nodiscard]] bool regroup(const Request& request, Ladder& ladder, Lease& leased) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] RegionAllocator::Spread spread_of_next_region() const POLDER_REQUIRES(mutex_);
    [[nodiscard]] uint32_t add_region(driver::Memory memory) POLDER_REQUIRES(mutex_);
    void remove_region(uint32_t index, Removed& removed) POLDER_REQUIRES(mutex_);
    uint64_t remove_unused_regions(const Block* keep, Removed& removed) POLDER_REQUIRES(mutex_);
    void give_to_source(Removed removed) POLDER_EXCLUDES(mutex_);

    // --- a region that grows; block_pool_growth.cpp. Called with the turn, without the lock ---
    struct Extension;
    [[nodiscard]] bool grow_in_place(const Request& request, Ladder& ladder, Lease& leased) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] uint32_t growing_region(ByteCount addresses, Ladder& ladder) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] std::optional<Extension> best_extension(Region& region, const Request& request,
                                                          uint64_t available) const POLDER_REQUIRES(mutex_);
    void add_step(const Region& region, Extension& extension, uint64_t available) const POLDER_REQUIRES(mutex_);
    void isolate_gaps(Region& region, const Extension& extension) POLDER_REQUIRES(mutex_);
    void cut_end(Region& region, ByteRange kept) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool commit_part(Region& region, ByteRange part, Ladder& ladder) POLDER_EXCLUDES(mutex_);
    void remove_idle_pages(Region& region, ByteRange kept, uint64_t bytes_max, Removed& removed)
        POLDER_REQUIRES(mutex_);

    // --- growth ahead of need; block_pool_ahead.cpp ---
    [[nodiscard]] std::unique_ptr<AheadThread> make_ahead_thread();
    [[nodiscard]] uint64_t step_ahead(const Region& region) const POLDER_REQUIRES(mutex_);
    void watch_free_memory(const Region& region) POLDER_REQUIRES(mutex_);
    void request_growth() noexcept POLDER_EXCLUDES(mutex_);
    void grow_ahead() noexcept POLDER_EXCLUDES(mutex_);

    // --- holes; block_pool_holes.cpp ---
    [[nodiscard]] bool merge_own_pending(const Request& request, Lease& leased) POLDER_REQUIRES(mutex_);
    struct Part;
    struct Hole;
    [[nodiscard]] std::vector<Part> parts_of(uint32_t index, std::span<const Block> movable) const
        POLDER_REQUIRES(mutex_);
    [[nodiscard]] std::optional<Hole> best_hole(uint32_t index, const LeaseRequest& request,
                                                std::span<const Part> parts) const POLDER_REQUIRES(mutex_);

    // --- freeing ---
    void flush_front() noexcept POLDER_EXCLUDES(mutex_);
    void give_up(std::span<const Block> blocks) noexcept POLDER_EXCLUDES(mutex_);
    void give_up(const Block& block, Timepoints&& after) noexcept POLDER_REQUIRES(mutex_);
    uint32_t drain_at_most(uint32_t count) POLDER_REQUIRES(mutex_);
    void drain_all() POLDER_EXCLUDES(mutex_);
    void take_back(const Block& block) POLDER_REQUIRES(mutex_);
    [[nodiscard]] uint64_t cache_allowed() const POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool must_purge() const POLDER_REQUIRES(mutex_);
    void request_purge_over_limit() POLDER_REQUIRES(mutex_);
    void purge_if_requested() noexcept POLDER_EXCLUDES(mutex_);
    struct Claims;
    void purge(const Block* keep) noexcept POLDER_EXCLUDES(mutex_);
    void purge_in_turn(const Block* keep) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] bool claim_dirty(Claims& claims) POLDER_EXCLUDES(mutex_);
    void return_clean(const Claims& claims) POLDER_EXCLUDES(mutex_);

    [[nodiscard]] std::string report(const Request& request, const Ladder& ladder) const;

    const std::unique_ptr<RegionSource> source_;
    const Options options_;
    const bool poisons_;
    const bool discards_;

    FrontCache front_;
    Turns turns_;
    mutable BiasedMutex mutex_;
    // The index is Block::region; null where a region was released.
    std::vector<std::unique_ptr<Region>> regions_ POLDER_GUARDED_BY(mutex_);
    PendingBlocks pending_ POLDER_GUARDED_BY(mutex_);
    // The free parts of the open hole, which is in region hole_region_.
    std::vector<RegionAllocator::Block> hole_ POLDER_GUARDED_BY(mutex_);
    uint32_t hole_region_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t limit_ POLDER_GUARDED_BY(mutex_);
    uint64_t reserved_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t reserved_peak_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t live_bytes_ POLDER_GUARDED_BY(mutex_) = 0;  // includes the blocks of the front cache and charged bytes
    uint64_t charged_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t live_peak_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t live_blocks_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t deferred_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t cached_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t allocations_ POLDER_GUARDED_BY(mutex_) = 0;  // without those from the front cache
    uint64_t reserves_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t retries_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t out_of_memory_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t cached_after_purge_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    std::atomic<bool> is_purge_requested_{false};
    // Less free memory than this lets the region grow ahead of need; 0: it does not.
    uint64_t ahead_below_ POLDER_GUARDED_BY(mutex_) = 0;
    // The address of the large block that was placed last (spread_of_next_region).
    DeviceAddress newest_large_ POLDER_GUARDED_BY(mutex_);
    std::atomic<bool> is_growth_requested_{false};
    const std::unique_ptr<AheadThread> ahead_;  // null: nothing grows ahead of need
};

}  // namespace polder::memory
