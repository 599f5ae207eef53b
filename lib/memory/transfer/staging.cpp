#include "staging.h"

#include <base/log.h>

#include <algorithm>

namespace polder::memory {
namespace {

// Chunks are small enough that the links overlap for most of the time, and large enough that a link's latency
// does not count.
constexpr uint64_t chunk_bytes_min = uint64_t{256} << 10;
constexpr uint64_t chunk_bytes_max = uint64_t{4} << 20;
constexpr uint64_t chunks_wanted = 32;
constexpr Alignment slot_alignment{128};

}  // namespace

Staging::~Staging() {
    if (reserve_)
        pool_->free(*reserve_, emptied_);
}

Result<Block> Staging::allocate_reserve() const {
    return pool_->allocate(ByteCount{slots_max * chunk_bytes_min}, slot_alignment);
}

void Staging::give_reserve(const Block& block) {
    if (reserve_)
        pool_->free(block, {});
    else
        reserve_ = block;
}

Result<Staging::Slots> Staging::take(uint64_t bytes) {
    Slots slots;
    slots.chunk_bytes =
        std::min(bytes, std::clamp(Alignment{4096}.round_up(bytes / chunks_wanted), chunk_bytes_min, chunk_bytes_max));
    slots.slot_bytes = slot_alignment.round_up(slots.chunk_bytes);
    slots.count =
        static_cast<uint32_t>(std::min<uint64_t>(slots_max, (bytes + slots.chunk_bytes - 1) / slots.chunk_bytes));
    Result<Lease> leased = pool_->lease({ByteCount{slots.count * slots.slot_bytes}, slot_alignment},
                                        {LeaseTerms::Consumer::device, nullptr, WhenFull::fail});
    // A slot waits for one timepoint, so that memory that still has several uses goes back.
    if (leased && leased->after.size() > 1 && reserve_) {
        pool_->free(leased->block, leased->after.view());
        leased = fail(Status::mem_object_allocation_failure);
    }
    if (leased) {
        for (const driver::Timepoint& point : leased->after)
            slots.emptied.fill(point);
        slots.block = leased->block;
        slots.base = leased->block.address;
        return slots;
    }
    if (!reserve_)
        return fail(std::move(leased).error());
    POLDER_LOG(memory, "staging goes through the reserve: no room for %llu bytes of it",
               static_cast<unsigned long long>(slots.count * slots.slot_bytes));
    slots.base = reserve_->address;
    slots.slot_bytes = chunk_bytes_min;
    slots.chunk_bytes = std::min(bytes, chunk_bytes_min);
    slots.count = slots_max;
    slots.emptied = emptied_;
    return slots;
}

void Staging::give_back(const Slots& slots, driver::Timepoint all_emptied) {
    if (slots.block)
        pool_->free(*slots.block, {&all_emptied, 1});
    else
        emptied_ = slots.emptied;
}

}  // namespace polder::memory
