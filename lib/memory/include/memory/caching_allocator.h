// CachingAllocator: the rules of PyTorch's native CUDA caching allocator, over any source of memory.
//
// The rules are those that PyTorch documents (https://pytorch.org/docs/stable/notes/cuda.html, "Memory management", and the
// description of the allocator in https://zdevito.github.io/2022/08/04/cuda-caching-allocator.html):
// - Sizes are rounded up to 512 bytes, or to a division of a power of two (roundup_power2_divisions).
// - Requests of up to 1 MiB come from the small pool, whose segments have 2 MiB. Others come from the large pool: segments
//   of 20 MiB for less than 10 MiB, else the size rounded up to 2 MiB.
// - Each queue has its own free blocks. The smallest block that fits is taken, and split when what remains is worth it:
//   512 bytes in the small pool, more than 1 MiB in the large one. Free neighbours are merged.
// - Blocks of max_split_size and more are oversize: never split, not given to smaller requests, and only to requests that
//   need at most 20 MiB less.
// - A freed block that only its own queue still uses is free at once, for that queue. One that other queues use is free
//   when they are done.
// - When the source has no more memory: with max_split_size, release one unsplit cached block that is large enough (else the
//   largest ones until enough is free); then release all unsplit blocks, waiting for commands in flight; then fail.
// - garbage_collection_threshold: before memory is reserved beyond that part of what is allowed, unsplit blocks are given
//   back that were not used for longer than the average.
// - expandable_segments: one segment per queue and pool, which grows, where the source offers addresses.
//
// Unlike in PyTorch, a block has the timepoints of its last uses, so that a request for another queue waits on the device if necessary,
// and the application need not record uses.
//
// After threads have waited for the lock a few times, small blocks use a front cache (front_cache.h): a thread that asks for the
// size and the queue of a block that it has just freed gets this block, instead of the one with the lowest address of that size.
//
// Bounds: lease and free of blocks of up to 2 MiB are those of size_bins.h, else O(log free blocks); free needs no memory. No call to the source is made under the lock. Any thread may call any function. Sizes are bytes.
#pragma once

#include <base/biased_mutex.h>
#include <memory/front_cache.h>
#include <memory/large_pages.h>
#include <memory/paged_array.h>
#include <memory/pending_blocks.h>
#include <memory/size_bins.h>
#include <memory/turn_allocator.h>

#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

namespace polder::memory {

class CachingAllocator final : public TurnAllocator {
public:
    CachingAllocator(std::unique_ptr<RegionSource> source, const AllocationPolicy& policy,
                     const AllocatorOptions& options);
    // Precondition: no block is in use. Releases all segments.
    ~CachingAllocator() override;
    CachingAllocator(const CachingAllocator&) = delete;
    CachingAllocator& operator=(const CachingAllocator&) = delete;

    void free_after(const Block& block, Timepoints&& after) noexcept override;
    void drain() override;
    // PyTorch's empty_cache().
    void trim() override;
    [[nodiscard]] Statistics statistics() const override;
    [[nodiscard]] bool validate() const override;

    // The size of the block that a request gets, and of the segment that is reserved for it.
    [[nodiscard]] uint64_t round_size(uint64_t bytes) const;
    [[nodiscard]] static uint64_t segment_size(uint64_t rounded);

private:
    using Index = uint32_t;
    static constexpr Index none = ~Index{0};
    using BinsNumber = uint16_t;
    static constexpr BinsNumber no_bins = UINT16_MAX;  // further queues: small blocks are in the set
    enum class Pool : uint8_t { small, large };

    // Order in which the free blocks of a pool are searched. Those of the small pool are in bins in the same order, except
    // for the few that have no bin.
    struct Key {
        const driver::Queue* queue = nullptr;
        uint64_t size = 0;
        uint64_t address = 0;
        Index chunk = none;
        friend auto operator<=>(const Key&, const Key&) = default;
    };
    using FreeSet = std::set<Key>;
    // A block of a segment, used, pending or free. It has only what leasing and freeing a small block need, in half a cache line, and
    // neighbours mostly lie side by side in the array. With a million blocks, each further cache line would be a cache miss.
    struct alignas(32) Chunk {
        uint64_t address = 0;
        uint64_t size = 0;
        Index segment = none;
        Index previous = none;  // neighbours in the segment
        Index next = none;
        BinsNumber bins = no_bins;  // the bins of its queue's small blocks; no_bins in the large pool
        enum class State : uint8_t {
            used,  // in use or pending
            in_set,  // free, in the set of its pool
            in_bin,
        } state = State::used;
        bool has_until = false;  // Times::until may be incomplete

        [[nodiscard]] bool is_free() const { return state != State::used; }
    };
    static_assert(sizeof(Chunk) == 32);
    // Further data of a chunk, which leasing and freeing rarely need.
    struct Times {
        driver::Timepoint until;  // on the segment's queue; when it is complete, the chunk is ready for all queues
        uint64_t freed_at = 0;  // in the large pool: the value of searches_ when the chunk was freed
    };
    struct Segment {
        driver::Memory memory;  // size 0: not in use
        const driver::Queue* queue = nullptr;
        BinsNumber bins = no_bins;  // the bins of the queue's small blocks
        Pool pool = Pool::small;
        Index first = none;
        Index last = none;
        uint64_t reserved_addresses = 0;  // bytes; 0: the segment does not grow
    };
    struct Fit {
        Index chunk = none;
        uint64_t padding = 0;
        uint64_t size = 0;  // what the request needs with padding, rounded up
    };
    // A free block that a request gets.
    struct Free {
        uint64_t address = 0;
        uint64_t size = 0;
        Pool pool = Pool::small;
        SizeBins* bins = nullptr;  // where it is the lowest of its size, if that is known
    };
    // Memory that is to be released to the source.
    struct Removed {
        driver::Memory memory;
        bool is_part = false;  // a part of a segment that grows: the addresses stay reserved
    };
    using RemovedList = std::vector<Removed>;
    enum class GrowBy : uint8_t { segment, block };

    [[nodiscard]] bool lease_now(const Request& request, Lease& leased) override;
    [[nodiscard]] Result<void> climb(const Request& request, Lease& leased) override;
    [[nodiscard]] bool try_steps(const Request& request, Ladder& ladder, bool& is_retry, Lease& leased)
        POLDER_EXCLUDES(mutex_);
    void flush_front() noexcept override;
    [[nodiscard]] bool lease_from_front(const Request& request, Lease& leased);
    [[nodiscard]] bool free_to_front(const Block& block) noexcept;
    void take_back(std::span<const Block> blocks) noexcept POLDER_EXCLUDES(mutex_);
    // The value of Block::region, which is the same for all blocks of one queue. Two queues have different ones unless their addresses differ by a
    // multiple of 64 GiB, which does not happen within one heap.
    [[nodiscard]] static uint32_t tag_of(const driver::Queue* queue) {
        return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(queue) >> 4);
    }

    // --- blocks ---
    [[nodiscard]] static Pool pool_of(uint64_t size);
    [[nodiscard]] FreeSet& set_of(Pool pool) POLDER_REQUIRES(mutex_) { return free_[static_cast<size_t>(pool)]; }
    [[nodiscard]] Key key_of(Index index) const POLDER_REQUIRES(mutex_);
    // The number of the bins for a queue's small blocks; no_bins when the queue never had a small block.
    [[nodiscard]] BinsNumber bins_of(const driver::Queue* queue) const POLDER_REQUIRES(mutex_);
    [[nodiscard]] BinsNumber make_bins_of(const driver::Queue* queue) POLDER_REQUIRES(mutex_);
    [[nodiscard]] driver::Timepoint until(Index index) const POLDER_REQUIRES(mutex_) {
        return chunks_[index].has_until ? times_[index].until : driver::Timepoint{};
    }
    void wait_until(Index index, driver::Timepoint until) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Pool pool_of_chunk(const Chunk& chunk) const POLDER_REQUIRES(mutex_) {
        return chunk.bins != no_bins ? Pool::small : segments_[chunk.segment].pool;
    }
    [[nodiscard]] bool is_split(const Chunk& chunk) const { return chunk.previous != none || chunk.next != none; }
    [[nodiscard]] bool is_oversize(uint64_t size) const { return size >= policy_.max_split_size.value; }
    [[nodiscard]] Index new_chunk() POLDER_REQUIRES(mutex_);
    [[nodiscard]] Index make_chunk() POLDER_REQUIRES(mutex_);
    void retire_chunk(Index index) POLDER_REQUIRES(mutex_);
    void retire_chunk(Chunk& chunk, Index index) POLDER_REQUIRES(mutex_);
    // Returns a Fit without a chunk when no free block fits.
    [[nodiscard]] Fit find(const Request& request) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Fit fit(const SizeBins::Entry& entry, uint64_t size, Alignment alignment) const;
    [[nodiscard]] Fit find_in_set(const Request& request, Pool pool, uint64_t size) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Fit find_in_bins(const Request& request, uint64_t size) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool take(const Request& request, const Fit& fit, Lease& leased) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool take_from(const Request& request, const Fit& fit, const Free& free, Lease& leased)
        POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool should_split(Pool pool, uint64_t size, uint64_t remaining) const;
    [[nodiscard]] bool try_cache(const Request& request, Lease& leased) POLDER_REQUIRES(mutex_);
    void insert_free(Index index) noexcept POLDER_REQUIRES(mutex_);
    void insert_free(Chunk& chunk, Index index) noexcept POLDER_REQUIRES(mutex_);
    [[nodiscard]] static bool list(SizeBins& bins, uint64_t size, const SizeBins::Entry& entry) noexcept;
    void insert_in_set(Chunk& chunk, Index index) noexcept POLDER_REQUIRES(mutex_);
    void note_used(Chunk& chunk, uint64_t size) noexcept POLDER_REQUIRES(mutex_);
    void extract_free(Index index) noexcept POLDER_REQUIRES(mutex_);
    void extract_free(Chunk& chunk, Index index) noexcept POLDER_REQUIRES(mutex_);
    void extract_from_set(const Chunk& chunk, Index index) noexcept POLDER_REQUIRES(mutex_);
    void make_free(Index index) noexcept POLDER_REQUIRES(mutex_);
    void make_free(Chunk& freed, Index index) noexcept POLDER_REQUIRES(mutex_);
    void free_after_use(const Block& block, Timepoints&& after) noexcept POLDER_REQUIRES(mutex_);
    void take_back(const Block& block, const Timepoints& after) noexcept POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool is_listed(Index index) const POLDER_REQUIRES(mutex_);
    [[nodiscard]] uint64_t free_chunks() const POLDER_REQUIRES(mutex_);
    void merge(Chunk& kept, Index left, Chunk& gone, Index right) noexcept POLDER_REQUIRES(mutex_);
    uint32_t drain_at_most(uint32_t count) POLDER_REQUIRES(mutex_);
    void drain_all() POLDER_EXCLUDES(mutex_);

    // --- segments; caching_segments.cpp ---
    // Called with the turn, without the lock.
    [[nodiscard]] bool grow(const Request& request, GrowBy by, Ladder& ladder, Lease& leased) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] bool grow_by(uint64_t bytes, const Request& request, Ladder& ladder, Lease& leased)
        POLDER_EXCLUDES(mutex_);
    [[nodiscard]] bool grow_or_reuse(const Request& request, Ladder& ladder, Lease& leased) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] bool grow_in_place(const Request& request, Ladder& ladder, Lease& leased) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] Index find_growing(const driver::Queue* queue, Pool pool) const POLDER_REQUIRES(mutex_);
    [[nodiscard]] Index add_segment(const Segment& made) POLDER_REQUIRES(mutex_);
    void append_free(Index segment, uint64_t bytes) POLDER_REQUIRES(mutex_);
    void remove_segment(Index segment, RemovedList& removed) POLDER_REQUIRES(mutex_);
    void shrink_segment(Index segment, RemovedList& removed) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool may_release(Index index) const POLDER_REQUIRES(mutex_);
    uint64_t give_back(RemovedList& removed) POLDER_EXCLUDES(mutex_);
    void collect_garbage(const Request& request, Ladder& ladder) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] bool release_available(const Request& request, Ladder& ladder) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] bool release_cached(const LeaseTerms& terms, Ladder& ladder) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] bool wait_for_cached() POLDER_EXCLUDES(mutex_);
    uint64_t release_unused() POLDER_EXCLUDES(mutex_);

    const AllocationPolicy policy_;
    const bool has_divisions_;
    const uint64_t min_block_;
    FrontCache front_;
    mutable BiasedMutex mutex_;
    PagedArray<Chunk> chunks_ POLDER_GUARDED_BY(mutex_);
    PagedArray<Times> times_ POLDER_GUARDED_BY(mutex_);  // of each chunk
    PagedArray<FreeSet::node_type> nodes_ POLDER_GUARDED_BY(mutex_);  // of each chunk, unless it is in the set
    std::vector<Index> spare_chunks_ POLDER_GUARDED_BY(mutex_);  // capacity for all of chunks_
    std::vector<Segment, LargePages<Segment>> segments_ POLDER_GUARDED_BY(mutex_);
    uint32_t unused_segments_ POLDER_GUARDED_BY(mutex_) = 0;
    FreeSet free_[2] POLDER_GUARDED_BY(mutex_);
    std::vector<std::unique_ptr<SizeBins>> bins_ POLDER_GUARDED_BY(mutex_);
    std::unordered_map<const driver::Queue*, BinsNumber> bins_by_queue_ POLDER_GUARDED_BY(mutex_);
    // The result of the last bins_of: most requests are for the same queue.
    mutable const driver::Queue* last_queue_ POLDER_GUARDED_BY(mutex_) = nullptr;
    mutable BinsNumber last_bins_ POLDER_GUARDED_BY(mutex_) = no_bins;
    PendingBlocks pending_ POLDER_GUARDED_BY(mutex_);
    uint64_t inactive_split_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t searches_ POLDER_GUARDED_BY(mutex_) = 0;  // how often the large pool was searched
};

}  // namespace polder::memory
