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
        ByteCount reserved;  // from the system or the device
        ByteCount reserved_peak;
        ByteCount live;  // in blocks not freed yet, and charged
        ByteCount live_peak;
        ByteCount deferred;  // pending: freed, while commands in flight use them
        ByteCount free;  // reserved, in no block
        ByteCount largest_free;  // one block without reserving more
        ByteCount inactive_split;  // free, beside blocks in use: cannot be given back
        ByteCount cached;  // free but still backed by the system; 0 unless the source discards
        uint64_t live_blocks = 0;
        uint64_t deferred_blocks = 0;
        uint64_t free_blocks = 0;
        uint64_t regions = 0;
        // Since the allocator was made.
        uint64_t allocations = 0;
        uint64_t frees = 0;
        uint64_t retries = 0;  // allocations that had memory given back or waited for before they succeeded
        uint64_t out_of_memory = 0;  // allocations that failed
        uint64_t hits = 0;  // allocations that reserved nothing
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
    // A block that is ready now.
    [[nodiscard]] Result<Block> allocate(ByteCount size, Alignment alignment, WhenFull when_full = WhenFull::wait) {
        const LeaseRequest request{size, alignment};
        Lease leased;
        POLDER_TRY(lease({&request, 1}, {LeaseTerms::Consumer::host, nullptr, when_full}, {&leased, 1}));
        return leased.block;
    }
    // The block may be used again when all of `after` is complete. Needs no host memory, and waits for nothing.
    virtual void free_after(const Block& block, Timepoints&& after) noexcept = 0;
    // Likewise with a copy of the list. Where the host has no memory for one, waits.
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

    // Counts memory that is used without a block (sparse.h) against the limit; false, and nothing, when it does not allow it.
    [[nodiscard]] virtual bool charge(ByteCount bytes) = 0;
    virtual void discharge(ByteCount bytes) noexcept = 0;

    // Frees pending blocks whose timepoints are complete.
    virtual void drain() = 0;
    // Drains, then releases all unused memory to the source.
    virtual void trim() = 0;

    // --- compaction: free memory is enough for a request, but scattered ---
    // Chooses a contiguous part of the memory that would be free if some of the `movable` blocks were elsewhere, with as few bytes to
    // move as possible, and appends their indices to `to_move`. Until close_hole, free bytes of this part are not leased. False when
    // there is no such part, or the policy does not compact. At most one hole is open, and one thread opens and closes holes.
    [[nodiscard]] virtual bool open_hole(const LeaseRequest& request, std::span<const Block> movable,
                                         std::vector<uint32_t>& to_move) {
        static_cast<void>(request), static_cast<void>(movable), static_cast<void>(to_move);
        return false;
    }
    virtual void close_hole() noexcept {}

    // Bounds what is in use, and what is pending.
    virtual void set_limit(ByteCount limit) = 0;
    [[nodiscard]] virtual ByteCount limit() const = 0;
    [[nodiscard]] virtual Statistics statistics() const = 0;
    // Sets the peak to the current value.
    enum class Peak : uint8_t { live, reserved };
    virtual void reset_peak(Peak peak) = 0;
    void reset_peaks() {
        reset_peak(Peak::live);
        reset_peak(Peak::reserved);
    }
    // The bytes that new blocks could still get in total, when all pending blocks are freed.
    [[nodiscard]] virtual ByteCount free_bytes() const = 0;
    // What is reserved and backed by physical memory. Asks the system.
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
