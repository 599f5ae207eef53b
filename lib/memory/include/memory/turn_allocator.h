// TurnAllocator: the common part of CachingAllocator and BucketAllocator: requests in turn, groups of requests that succeed or fail
// together, waiting on the host, limits, and the report of a failure.
//
// A request is first tried without waiting (lease_now). When there is no room, it waits for its turn and tries the
// policy's further steps; waiting requests are served first come, first served. A group of requests always waits for its turn, so that
// two groups never have some blocks each and wait for the others. Any thread may call any function. Sizes are bytes.
#pragma once

#include <memory/allocation_policy.h>
#include <memory/allocator.h>
#include <memory/region_source.h>
#include <memory/tally.h>
#include <memory/turns.h>

#include <memory>
#include <string>

namespace polder::memory {

class TurnAllocator : public Allocator {
public:
    using Allocator::lease;
    [[nodiscard]] Result<void> lease(std::span<const LeaseRequest> requests, const LeaseTerms& terms,
                                     std::span<Lease> leases) final;

    [[nodiscard]] bool charge(ByteCount bytes) final {
        if (tally_.charge(bytes.value)) [[likely]]
            return true;
        flush_front();
        return tally_.charge(bytes.value);
    }
    void discharge(ByteCount bytes) noexcept final { tally_.discharge(bytes.value); }
    void set_limit(ByteCount limit) final { tally_.set_limit(limit); }
    [[nodiscard]] ByteCount limit() const final { return ByteCount{tally_.limit()}; }
    void reset_peak(Peak peak) final { tally_.reset_peak(peak); }
    [[nodiscard]] ByteCount free_bytes() const final;
    [[nodiscard]] ByteCount resident() const final { return ByteCount{tally_.reserved() + tally_.charged()}; }

protected:
    struct Request {
        ByteCount asked;
        Alignment alignment;
        LeaseTerms terms;
    };
    // What the steps of one request have done, for the report when it fails.
    struct Ladder {
        uint64_t waited = 0;
        uint64_t released_bytes = 0;
        std::string source_said;
    };

    TurnAllocator(std::unique_ptr<RegionSource> source, const AllocatorOptions& options, Tally::Writers writers)
        : source_(std::move(source)), options_(options), tally_(options.limit, writers) {}

    // Tries to lease without calling the source and without the turn. False when that finds no room.
    [[nodiscard]] virtual bool lease_now(const Request& request, Lease& leased) = 0;
    // Tries all steps, with the turn.
    [[nodiscard]] virtual Result<void> climb(const Request& request, Lease& leased) = 0;

    // Frees the blocks of the front cache, for policies that have one.
    virtual void flush_front() noexcept {}

    // While this object exists, no request has the turn. For work such as trim.
    class Housekeeping {
    public:
        explicit Housekeeping(TurnAllocator& allocator) : turns_(allocator.turns_) { turns_.enter_quietly(); }
        ~Housekeeping() { turns_.leave_quietly(); }
        Housekeeping(const Housekeeping&) = delete;
        Housekeeping& operator=(const Housekeeping&) = delete;

    private:
        Turns& turns_;
    };

    [[nodiscard]] bool is_quiet() const { return !turns_.requested(); }
    [[nodiscard]] Result<driver::Memory> reserve(ByteCount size, Ladder& ladder);
    // Counts the failure and reports it.
    [[nodiscard]] Error out_of_memory(const Request& request, const Ladder& ladder);
    void log_allocation(const Request& request, const Lease& leased) const;

    const std::unique_ptr<RegionSource> source_;
    const AllocatorOptions options_;
    Tally tally_;

private:
    [[nodiscard]] Result<void> lease_with_turn(std::span<const LeaseRequest> requests, const LeaseTerms& terms,
                                               std::span<Lease> leases, Tried tried);
    static void wait_for(Lease& leased);

    Turns turns_;
};

}  // namespace polder::memory
