// Staging: host memory through which bytes are copied from one device to another, in slots that are filled and emptied in turn.
//
// One per domain. No transfer waits for memory: it gets a block of host memory if there is room at once, otherwise
// the domain's reserve of 1 MiB, which was allocated when memory of a second device was first requested. Transfers use the
// reserve one after the other: a transfer holds it while it submits, and its operations wait on their queues until the
// transfer before it has emptied each slot. Any thread.
#pragma once

#include <base/mutex.h>
#include <memory/allocator.h>

#include <array>
#include <optional>
#include <polder/driver.h>
#include <polder/result.h>

namespace polder::memory {

class Staging;

// The slots of one transfer. The destructor returns the memory, which is used again when all slots have been emptied.
class StagingSlots {
public:
    // More than two, so that neither link is idle when a thread is late.
    static constexpr uint32_t count_max = 4;

    StagingSlots(StagingSlots&& other) noexcept;
    StagingSlots& operator=(StagingSlots&&) = delete;
    ~StagingSlots();

    // The most bytes that are copied to one slot.
    [[nodiscard]] uint64_t chunk_bytes() const { return chunk_bytes_; }
    [[nodiscard]] DeviceAddress address() const { return base_.plus(next_ * slot_bytes_); }
    // The timepoint that filling the slot waits for. The transfer sets it to the operation after which the slot is free again.
    [[nodiscard]] driver::Timepoint& emptied() { return emptied_[next_]; }
    // The hidden queues that the transfer used last, or null. It prefers them, so that its operations stay in order.
    const driver::Queue* out = nullptr;
    const driver::Queue* in = nullptr;
    // Selects the next slot.
    void advance() { next_ = (next_ + 1) % count_; }
    // True when these slots are the reserve. Other transfers may wait for it, so it must not be held while another lock is taken.
    [[nodiscard]] bool is_reserve() const { return !block_; }

private:
    friend class Staging;
    explicit StagingSlots(Staging& owner) : owner_(&owner) {}

    Staging* owner_;
    DeviceAddress base_;
    uint64_t slot_bytes_ = 0;
    uint64_t chunk_bytes_ = 0;
    uint32_t count_ = 0;
    uint32_t next_ = 0;
    std::array<driver::Timepoint, count_max> emptied_;
    std::optional<Block> block_;  // none: the reserve
};

class Staging {
public:
    // `pool` is null for a context without host memory, which never stages.
    explicit Staging(Allocator* pool) : pool_(pool) {}
    ~Staging();
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    [[nodiscard]] bool has_reserve();
    // Allocates the reserve unless there is one. May wait for memory.
    [[nodiscard]] Result<void> allocate_reserve();

    // Returns slots for a transfer of `bytes` bytes. Fails only when there is neither room nor a reserve.
    [[nodiscard]] Result<StagingSlots> take(uint64_t bytes);
    // The size of the chunks of a transfer of `bytes` bytes.
    [[nodiscard]] static uint64_t chunk_bytes(uint64_t bytes);

private:
    friend class StagingSlots;
    void give_back(StagingSlots& slots) noexcept;

    Allocator* const pool_;
    Mutex mutex_;  // held by the slots that use the reserve
    std::optional<Block> reserve_ POLDER_GUARDED_BY(mutex_);
    std::array<driver::Timepoint, StagingSlots::count_max> emptied_ POLDER_GUARDED_BY(mutex_);  // of the reserve
    uint32_t next_ POLDER_GUARDED_BY(mutex_) = 0;  // the reserve's next slot
};

}  // namespace polder::memory
