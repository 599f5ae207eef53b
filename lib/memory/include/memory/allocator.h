// Allocator: allocates blocks of one memory space. The interface of all allocation policies.
//
// An allocation is a lease (lease.h). Requests that have to wait are served first come, first served.
// Any thread may call any function. Sizes are bytes.
#pragma once

#include <memory/lease.h>

#include <memory>
#include <new>
#include <polder/driver.h>
#include <polder/result.h>
#include <polder/types.h>
#include <span>
#include <utility>
#include <vector>

namespace polder::memory {

class Allocator {
public:
    struct Statistics {
        ByteCount reserved;  // obtained from the system or the device
        ByteCount reserved_peak;
        ByteCount live;  // in blocks that are not freed, plus charged bytes
        ByteCount live_peak;
        ByteCount deferred;  // in pending blocks: freed, but commands in flight still use them
        ByteCount free;  // reserved, but in no block
        ByteCount largest_free;  // the largest block that can be allocated without reserving more
        ByteCount inactive_split;  // free, but in a region with blocks in use, so that it cannot be released
        ByteCount cached;  // free, but the system still backs it; 0 unless the source discards
        uint64_t live_blocks = 0;
        uint64_t deferred_blocks = 0;
        uint64_t free_blocks = 0;
        uint64_t regions = 0;
        // Counts since the allocator was created.
        uint64_t allocations = 0;
        uint64_t frees = 0;
        uint64_t retries = 0;  // allocations that succeeded after memory was released or waited for
        uint64_t out_of_memory = 0;  // allocations that failed
        uint64_t hits = 0;  // allocations for which nothing had to be reserved
    };

    virtual ~Allocator() = default;

    // Allocates for all of the requests or for none; leases[i] is for requests[i]. mem_object_allocation_failure, with a report of
    // all steps that were tried, when there is no room.
    [[nodiscard]] virtual Result<void> lease(std::span<const LeaseRequest> requests, const LeaseTerms& terms,
                                             std::span<Lease> leases) = 0;
    [[nodiscard]] Result<Lease> lease(const LeaseRequest& request, const LeaseTerms& terms) {
        Lease leased;
        POLDER_TRY(lease({&request, 1}, terms, {&leased, 1}));
        return leased;
    }
    // Allocates a block that is ready when this returns.
    [[nodiscard]] Result<Block> allocate(ByteCount size, Alignment alignment, WhenFull when_full = WhenFull::wait) {
        const LeaseRequest request{size, alignment};
        Lease leased;
        POLDER_TRY(lease({&request, 1}, {LeaseTerms::Consumer::host, nullptr, when_full}, {&leased, 1}));
        return leased.block;
    }
    // Frees the block; it may be used again when all of `after` is complete. Needs no host memory and does not wait.
    virtual void free_after(const Block& block, Timepoints&& after) noexcept = 0;
    // The same, but copies the list. When the host has no memory for the copy, waits for all of `after`.
    void free(const Block& block, driver::Waits after) noexcept {
        Timepoints incomplete;
        for (const driver::Timepoint& point : after) {
            if (point.is_complete())
                continue;
            try {
                incomplete.push_back(point);
            } catch (const std::bad_alloc&) {
                point.queue->wait(point.value);
            }
        }
        free_after(block, std::move(incomplete));
    }

    // Counts memory that is used without a block (sparse.h) against the limit. False, and counts nothing, when the limit does not allow it.
    [[nodiscard]] virtual bool charge(ByteCount bytes) = 0;
    virtual void discharge(ByteCount bytes) noexcept = 0;

    // Frees pending blocks whose timepoints are complete.
    virtual void drain() = 0;
    // Drains, then releases all unused memory to the source.
    virtual void trim() = 0;

    // --- compaction: free memory is enough for a request, but scattered ---
    // Chooses a contiguous part of the memory that would be free if some of the `movable` blocks were elsewhere, with as few bytes to
    // move as possible, and appends the indices of these blocks to `to_move`. Until close_hole, free bytes of this part are not leased. False
    // when there is no such part, or the policy does not compact. At most one hole is open; only the thread with the turn may call this.
    [[nodiscard]] virtual bool open_hole(const LeaseRequest& request, std::span<const Block> movable,
                                         std::vector<uint32_t>& to_move) {
        static_cast<void>(request), static_cast<void>(movable), static_cast<void>(to_move);
        return false;
    }
    virtual void close_hole() noexcept {}

    // Sets the limit for the bytes in use and pending together.
    virtual void set_limit(ByteCount limit) = 0;
    [[nodiscard]] virtual ByteCount limit() const = 0;
    [[nodiscard]] virtual Statistics statistics() const = 0;
    // reset_peak sets the peak to the current value.
    enum class Peak : uint8_t { live, reserved };
    virtual void reset_peak(Peak peak) = 0;
    void reset_peaks() {
        reset_peak(Peak::live);
        reset_peak(Peak::reserved);
    }
    // The bytes that new blocks could still get in total after all pending blocks were freed.
    [[nodiscard]] virtual ByteCount free_bytes() const = 0;
    // The reserved bytes that physical memory backs. May make system calls.
    [[nodiscard]] virtual ByteCount resident() const { return statistics().reserved; }
    // Checks every invariant; for tests.
    [[nodiscard]] virtual bool validate() const = 0;

protected:
    static void drop_complete(Timepoints& points) noexcept {
        for (uint32_t i = points.size(); i-- > 0;)
            if (points[i].is_complete())
                points.erase_unordered(i);
    }
};

}  // namespace polder::memory
