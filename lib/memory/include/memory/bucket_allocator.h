// BucketAllocator: blocks of powers of two, for drivers whose memory has handles instead of addresses.
//
// A request gets a block of the next power of two, at least 256 bytes. Each power has a bucket with its own lock, so
// that threads with different sizes do not wait for each other. The free block that was freed last is used first. Small blocks are
// parts of slabs, which come from the source; each larger block is a slab by itself.
//
// A block has a generation number, so that freeing a block a second time does nothing: a driver's handle may be released twice. At most
// max_bytes are kept free: beyond that, the least recently used slabs are released to the source. With `persistent:True`, all free
// blocks are kept until a request needs their memory.
//
// A freed block that commands in flight still use is pending in its bucket. A request for the same queue can use it at once. Other requests
// use it when the commands are complete or, when the source has no more memory, wait for the commands on the device.
//
// Bounds: lease and free are O(1) unless the source is asked; free needs no memory. No call to the source is made under a
// lock. Any thread may call any function. Sizes are bytes.
#pragma once

#include <base/biased_mutex.h>
#include <memory/paged_array.h>
#include <memory/pending_blocks.h>
#include <memory/turn_allocator.h>

#include <array>
#include <atomic>
#include <deque>
#include <optional>
#include <vector>

namespace polder::memory {

class BucketAllocator final : public TurnAllocator {
public:
    BucketAllocator(std::unique_ptr<RegionSource> source, const AllocationPolicy& policy,
                    const AllocatorOptions& options);
    // Precondition: no block is in use. Releases all slabs.
    ~BucketAllocator() override;
    BucketAllocator(const BucketAllocator&) = delete;
    BucketAllocator& operator=(const BucketAllocator&) = delete;

    void free_after(const Block& block, Timepoints&& after) noexcept override;
    void drain() override;
    // Releases all free slabs.
    void clear();
    // The same, unless blocks are persistent.
    void trim() override;
    [[nodiscard]] Statistics statistics() const override;
    [[nodiscard]] bool validate() const override;

    struct BucketStatistics {
        uint64_t block_bytes = 0;
        uint64_t hits = 0;  // requests that got an existing block
        uint64_t misses = 0;
        uint64_t stale_frees = 0;  // frees of blocks that were free already
        uint64_t free_blocks = 0;
        bool is_shared =
            false;  // another thread than the calling one has locked the bucket, or the system has no membarrier
        [[nodiscard]] double hit_rate() const {
            const uint64_t all = hits + misses;
            return all == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(all);
        }
    };
    [[nodiscard]] BucketStatistics bucket_statistics(ByteCount size) const;

private:
    using Index = uint32_t;
    static constexpr Index none = ~Index{0};
    static constexpr uint32_t first_log2 = 8;
    static constexpr uint32_t bucket_count = 64 - first_log2;

    // A block. Its generation is odd while it is in use, and never has the same value again.
    struct Record {
        DeviceAddress address;
        uint64_t generation = 0;
        Index slab = none;
        Index newer = none;  // neighbours among the bucket's free blocks
        Index older = none;
    };
    // Contiguous memory of the source, divided into blocks of one size.
    struct Slab {
        driver::Memory memory;  // size 0: the slab does not exist
        std::vector<Index> records;
        uint64_t unused_since = 0;
        Index newer = none;  // neighbours among the bucket's unused slabs
        Index older = none;
    };
    // Elements of an array, linked by their members newer and older.
    struct List {
        Index newest = none;
        Index oldest = none;
    };
    struct alignas(128) Bucket {
        mutable BiasedMutex mutex;
        uint32_t number = 0;
        PagedArray<Record> records POLDER_GUARDED_BY(mutex);
        std::vector<Index> spare_records POLDER_GUARDED_BY(mutex);  // capacity for all of records
        std::deque<Slab> slabs POLDER_GUARDED_BY(mutex);
        PagedArray<uint32_t> used POLDER_GUARDED_BY(mutex);  // of each slab: blocks in use or pending
        std::vector<Index> spare_slabs POLDER_GUARDED_BY(mutex);  // capacity for all of slabs
        List free POLDER_GUARDED_BY(mutex);  // the free records
        List unused POLDER_GUARDED_BY(mutex);  // the slabs without used blocks
        PendingBlocks pending POLDER_GUARDED_BY(mutex);
        uint64_t hits POLDER_GUARDED_BY(mutex) = 0;
        uint64_t misses POLDER_GUARDED_BY(mutex) = 0;
        uint64_t stale_frees POLDER_GUARDED_BY(mutex) = 0;
        uint64_t free_blocks POLDER_GUARDED_BY(mutex) = 0;
        uint64_t slab_count POLDER_GUARDED_BY(mutex) = 0;
        uint64_t unused_bytes POLDER_GUARDED_BY(mutex) = 0;  // in slabs without used blocks
        // Written under the lock, and read without it, so that a thread does not lock the buckets of others for nothing.
        std::atomic<uint64_t> oldest_unused{UINT64_MAX};  // the smallest Slab::unused_since
        std::atomic<bool> may_have_pending{false};
    };

    [[nodiscard]] bool lease_now(const Request& request, Lease& leased) override;
    [[nodiscard]] Result<void> climb(const Request& request, Lease& leased) override;
    [[nodiscard]] bool try_steps(const Request& request, Ladder& ladder, bool& is_retry, Lease& leased);

    [[nodiscard]] uint32_t bucket_of(const Request& request) const;
    [[nodiscard]] static uint64_t block_bytes(uint32_t number) { return uint64_t{1} << (number + first_log2); }
    template <class Elements>
    static void link(List& list, Elements& elements, Index index) noexcept;
    template <class Elements>
    static void unlink(List& list, Elements& elements, Index index) noexcept;

    // --- places for a block; false: there is none ---
    [[nodiscard]] bool take(uint32_t number, const Request& request, Lease& leased);
    [[nodiscard]] bool take_free(Bucket& bucket, const Request& request, Lease& leased) POLDER_REQUIRES(bucket.mutex);
    [[nodiscard]] bool take_larger(uint32_t number, const Request& request, Lease& leased);
    [[nodiscard]] bool take_pending(uint32_t number, const Request& request, Lease& leased);
    [[nodiscard]] bool grow(uint32_t number, const Request& request, Ladder& ladder, Lease& leased);
    [[nodiscard]] bool grow_by(uint64_t bytes, uint32_t number, const Request& request, Ladder& ladder, Lease& leased);
    void add_slab(Bucket& bucket, driver::Memory memory) POLDER_REQUIRES(bucket.mutex);
    void hand_out(Bucket& bucket, Index index, const Request& request, Lease& leased) POLDER_REQUIRES(bucket.mutex);

    // --- freeing ---
    void put_free(Bucket& bucket, Index index) noexcept POLDER_REQUIRES(bucket.mutex);
    [[nodiscard]] uint64_t moment() const noexcept;
    void note_oldest(Bucket& bucket) noexcept POLDER_REQUIRES(bucket.mutex);
    uint32_t drain_at_most(Bucket& bucket, uint32_t count) POLDER_REQUIRES(bucket.mutex);
    void drain_all();
    [[nodiscard]] std::optional<driver::Timepoint> oldest_pending() const;
    [[nodiscard]] driver::Memory remove_oldest_unused(uint32_t number) noexcept;
    uint64_t give_back_beyond(uint64_t kept) noexcept;
    [[nodiscard]] static bool validate(const Bucket& bucket, uint64_t block_bytes, uint64_t& used_bytes)
        POLDER_REQUIRES(bucket.mutex);

    const uint64_t max_bytes_;
    const bool is_persistent_;
    std::array<Bucket, bucket_count> buckets_;
};

}  // namespace polder::memory
