#include "lease_in_turn.h"

#include <base/log.h>
#include <memory/turn_allocator.h>

#include <cassert>
#include <cinttypes>
#include <cstdio>
#include <new>

namespace polder::memory {

Result<void> TurnAllocator::lease(std::span<const LeaseRequest> requests, const LeaseTerms& terms,
                                  std::span<Lease> leases) {
    assert(requests.size() == leases.size());
    // Only a single request may be tried without the turn.
    if (requests.size() != 1 || !is_quiet()) [[unlikely]]
        return lease_with_turn(requests, terms, leases, Tried::no);
    if (!lease_now({requests[0].size, requests[0].alignment, terms}, leases[0])) [[unlikely]]
        return lease_with_turn(requests, terms, leases, Tried::yes);
    if (terms.consumer == LeaseTerms::Consumer::host)
        wait_for(leases[0]);
    return {};
}

[[gnu::noinline]] Result<void> TurnAllocator::lease_with_turn(std::span<const LeaseRequest> requests,
                                                              const LeaseTerms& terms, std::span<Lease> leases,
                                                              Tried tried) {
    const auto full = [&](size_t index) { return Request{requests[index].size, requests[index].alignment, terms}; };
    POLDER_TRY(lease_in_turn(
        turns_, terms.when_full, requests.size() == 1 ? tried : Tried::yes, leases,
        [&] { return lease_now(full(0), leases[0]); },
        [&](size_t index, Lease& leased) { return climb(full(index), leased); },
        [&](const Lease& gained) { free(gained.block, gained.after.view()); }));
    if (terms.consumer == LeaseTerms::Consumer::host)
        for (Lease& leased : leases)
            wait_for(leased);
    return {};
}

void TurnAllocator::wait_for(Lease& leased) {
    for (const driver::Timepoint& point : leased.after)
        point.queue->wait(point.value);
    leased.after.clear();
}

Result<driver::Memory> TurnAllocator::reserve(ByteCount size, Ladder& ladder) {
    Result<driver::Memory> memory = source_->reserve(size);
    if (!memory) {
        ladder.source_said = memory.error().detail();
        return memory;
    }
    tally_.reserve(memory->size);
    POLDER_LOG(memory, "space %u: reserve a region of %" PRIu64 " bytes at 0x%" PRIx64, options_.space.value,
               memory->size, memory->address.value);
    return memory;
}

ByteCount TurnAllocator::free_bytes() const {
    const uint64_t available = source_->available().value;
    const uint64_t limit = tally_.limit();
    const uint64_t live = tally_.live() + tally_.charged();
    return ByteCount{std::min(tally_.free_bytes() + tally_.deferred() + available, limit - std::min(limit, live))};
}

void TurnAllocator::log_allocation(const Request& request, const Lease& leased) const {
    POLDER_LOG(memory, "space %u: allocate %" PRIu64 " bytes at 0x%" PRIx64, options_.space.value, request.asked.value,
               leased.block.address.value);
}

Error TurnAllocator::out_of_memory(const Request& request, const Ladder& ladder) {
    tally_.count_out_of_memory();
    const Statistics now = statistics();
    char buffer[768];
    std::snprintf(buffer, sizeof buffer,
                  "out of memory in space %u: asked for %" PRIu64 " bytes (alignment %" PRIu64 "); free %" PRIu64
                  ", largest free block %" PRIu64 ", live %" PRIu64 " in %" PRIu64 " blocks, deferred %" PRIu64
                  ", reserved %" PRIu64 " in %" PRIu64 " regions, limit %" PRIu64 ", source has %" PRIu64
                  "; drained, waited for %" PRIu64 " deferred blocks, gave back %" PRIu64 " bytes",
                  options_.space.value, request.asked.value, request.alignment.value, now.free.value,
                  now.largest_free.value, now.live.value, now.live_blocks, now.deferred.value, now.reserved.value,
                  now.regions, tally_.limit(), source_->available().value, ladder.waited, ladder.released_bytes);
    std::string text = buffer;
    if (!tally_.allows(request.asked.value))
        text += "; the limit does not allow more";
    else if (!ladder.source_said.empty())
        text += "; the source says: " + ladder.source_said;
    POLDER_LOG(memory, "%s", text.c_str());
    return Error{Status::mem_object_allocation_failure, std::move(text)};
}

}  // namespace polder::memory
