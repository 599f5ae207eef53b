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
    const auto full = [&](size_t index) { return Request{requests[index].size, requests[index].alignment, terms}; };
    // Only a single request may be tried without the turn.
    const auto lease_one_now = [&] { return lease_now(full(0), leases[0]); };
    const Tried tried = requests.size() != 1 || is_quiet() ? Tried::yes : Tried::no;
    if (requests.size() != 1 || tried == Tried::no || !lease_one_now()) {
        POLDER_TRY(lease_in_turn(
            turns_, terms.when_full, tried, leases, lease_one_now,
            [&](size_t index, Lease& leased) { return climb(full(index), leased); },
            [&](const Lease& gained) { free(gained.block, gained.after.view()); }));
    }
    if (terms.consumer == LeaseTerms::Consumer::device) [[likely]]
        return {};
    for (Lease& leased : leases) {
        for (const driver::Timepoint& point : leased.after)
            point.queue->wait(point.value);
        leased.after.clear();
    }
    return {};
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
