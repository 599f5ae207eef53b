#include "recording_allocator.h"

namespace polder::memory::trace {
namespace {

void record_memory(Kind kind, SpaceId space, driver::Memory memory) {
    Fields fields;
    fields.kind = kind;
    fields.space = space;
    fields.address = memory.address.value;
    fields.size = memory.size;
    record(fields);
}

} // namespace

Result<driver::Memory> RecordingSource::reserve(ByteCount size) {
    Result<driver::Memory> memory = source_->reserve(size);
    if (memory)
        record_memory(Kind::region_reserve, space_, *memory);
    return memory;
}

void RecordingSource::release(driver::Memory memory) {
    record_memory(Kind::region_release, space_, memory);
    source_->release(memory);
}

Result<void> RecordingSource::commit(driver::Memory range) {
    Result<void> result = source_->growable()->commit(range);
    if (result)
        record_memory(Kind::region_reserve, space_, range);
    return result;
}

void RecordingSource::decommit(driver::Memory range) {
    record_memory(Kind::region_release, space_, range);
    source_->growable()->decommit(range);
}

Result<void> RecordingAllocator::lease(std::span<const LeaseRequest> requests, const LeaseTerms& terms,
                                       std::span<Lease> leases) {
    record_progress(terms.queue);
    Result<void> result = allocator_->lease(requests, terms, leases);
    if (!result) {
        Refusal refusal{Kind::refused, space_, ByteCount{0}, requests.empty() ? Alignment{1} : requests[0].alignment};
        for (const LeaseRequest& request : requests)
            refusal.size.value += request.size.value;
        record_refusal(refusal, result.error().detail());
        return result;
    }
    Fields fields;
    fields.space = space_;
    fields.queue = terms.queue;
    fields.kind = Kind::lease;
    for (const Lease& leased : leases) {
        fields.address = leased.block.address.value;
        fields.size = leased.block.size.value;
        fields.value = leased.block.place.size.value;
        record(fields);
    }
    return result;
}

void RecordingAllocator::free_after(const Block& block, Timepoints&& after) noexcept {
    Fields fields;
    fields.kind = Kind::free;
    fields.space = space_;
    fields.address = block.address.value;
    fields.size = block.place.size.value;
    for (const driver::Timepoint& point : after) {
        record_progress(point.queue);
        if (point.is_complete())
            continue;
        // Each timepoint except the last has its own event with the flag more_follow, which does not yet free the block.
        if (fields.queue) {
            fields.flags = polder::trace::more_follow;
            record(fields);
            fields.flags = 0;
        }
        fields.queue = point.queue;
        fields.value = point.value;
    }
    record(fields);
    allocator_->free_after(block, std::move(after));
}

}  // namespace polder::memory::trace
