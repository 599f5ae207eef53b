// The slots for one staged transfer: up to four parts of a block from the allocator of host memory, if it has room at once; otherwise the four
// slots of the reserve, which one transfer at a time can use.
#include "staging.h"

#include <base/log.h>

#include <algorithm>
#include <utility>

namespace polder::memory {
namespace {

// Chunks are small enough that the copies over the two links overlap for most of the time, and large enough that the latency of a
// link does not matter.
constexpr uint64_t chunk_bytes_min = uint64_t{256} << 10;
constexpr uint64_t chunk_bytes_max = uint64_t{4} << 20;
constexpr uint64_t chunks_wanted = 32;
constexpr Alignment slot_alignment{128};

}  // namespace

StagingSlots::StagingSlots(StagingSlots&& other) noexcept
    : out(other.out), in(other.in), owner_(std::exchange(other.owner_, nullptr)), base_(other.base_),
      slot_bytes_(other.slot_bytes_), chunk_bytes_(other.chunk_bytes_), count_(other.count_), next_(other.next_),
      emptied_(other.emptied_), block_(other.block_) {}

StagingSlots::~StagingSlots() {
    if (owner_)
        owner_->give_back(*this);
}

Staging::~Staging() POLDER_NO_THREAD_SAFETY_ANALYSIS {
    if (reserve_)
        pool_->free(*reserve_, emptied_);
}

bool Staging::has_reserve() {
    const Lock lock{mutex_};
    return reserve_.has_value();
}

Result<void> Staging::allocate_reserve() {
    POLDER_ASSIGN(block, pool_->allocate(ByteCount{StagingSlots::count_max * chunk_bytes_min}, slot_alignment));
    const Lock lock{mutex_};
    if (reserve_)
        pool_->free(block, {});
    else
        reserve_ = block;
    return {};
}

uint64_t Staging::chunk_bytes(uint64_t bytes) {
    return std::min(bytes,
                    std::clamp(Alignment{4096}.round_up(bytes / chunks_wanted), chunk_bytes_min, chunk_bytes_max));
}

// A transfer that uses the reserve holds the mutex until it gives the slots back.
Result<StagingSlots> Staging::take(uint64_t bytes) POLDER_NO_THREAD_SAFETY_ANALYSIS {
    StagingSlots slots{*this};
    slots.chunk_bytes_ = chunk_bytes(bytes);
    slots.slot_bytes_ = slot_alignment.round_up(slots.chunk_bytes_);
    slots.count_ = static_cast<uint32_t>(
        std::min<uint64_t>(StagingSlots::count_max, (bytes + slots.chunk_bytes_ - 1) / slots.chunk_bytes_));
    const ByteCount size{slots.count_ * slots.slot_bytes_};
    Result<Lease> leased =
        pool_->lease({size, slot_alignment}, {LeaseTerms::Consumer::device, nullptr, WhenFull::fail});
    // A slot can wait for only one timepoint, so a block that has to wait for several is freed again.
    if (leased && leased->after.size() > 1) {
        pool_->free(leased->block, leased->after.view());
        leased = fail(Status::mem_object_allocation_failure);
    }
    if (leased) {
        for (const driver::Timepoint& point : leased->after)
            slots.emptied_.fill(point);
        slots.block_ = leased->block;
        slots.base_ = leased->block.address;
        return slots;
    }
    mutex_.lock();
    if (!reserve_) {
        mutex_.unlock();
        slots.owner_ = nullptr;
        return fail(std::move(leased).error());
    }
    POLDER_LOG(memory, "staging uses its reserved memory: no room for %llu bytes more",
               static_cast<unsigned long long>(size.value));
    slots.base_ = reserve_->address;
    slots.slot_bytes_ = chunk_bytes_min;
    slots.chunk_bytes_ = std::min(bytes, chunk_bytes_min);
    slots.count_ = StagingSlots::count_max;
    slots.emptied_ = emptied_;
    slots.next_ = next_;
    return slots;
}

void Staging::give_back(StagingSlots& slots) noexcept POLDER_NO_THREAD_SAFETY_ANALYSIS {
    if (slots.block_) {
        pool_->free(*slots.block_, slots.emptied_);
        return;
    }
    emptied_ = slots.emptied_;
    next_ = slots.next_;
    mutex_.unlock();
}

}  // namespace polder::memory
