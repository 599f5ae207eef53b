// Staging: host memory through which bytes go from one device to another, in slots that are filled and emptied in turn.
//
// One per domain. Nothing here waits for memory: a transfer gets a block of the host's pool if there is one at once, else
// the domain's reserve, 1 MiB that was allocated when memory of a second device was first asked for. Transfers share the
// reserve one after the other: each holds it while it submits, and waits, on its queues, for each slot to be emptied by
// the one before. Any thread.
#pragma once

#include <base/mutex.h>
#include <memory/allocator.h>

#include <array>
#include <optional>
#include <polder/driver.h>
#include <polder/result.h>

namespace polder::memory {

class Staging;

// The slots of one transfer. Returns the memory when destroyed, to be used again when all slots have been emptied.
class StagingSlots {
public:
    // More than two, so that neither link waits when a thread is late.
    static constexpr uint32_t count_max = 4;

    StagingSlots(StagingSlots&& other) noexcept;
    StagingSlots& operator=(StagingSlots&&) = delete;
    ~StagingSlots();

    // At most this many bytes are put into a slot.
    [[nodiscard]] uint64_t chunk_bytes() const { return chunk_bytes_; }
    [[nodiscard]] DeviceAddress address() const { return base_.plus(next_ * slot_bytes_); }
    // What filling the slot has to wait for. The transfer sets it to the point from which the slot is free again.
    [[nodiscard]] driver::Timepoint& emptied() { return emptied_[next_]; }
    // The hidden queues that the transfer has used last, null before: with them it goes on in order.
    const driver::Queue* out = nullptr;
    const driver::Queue* in = nullptr;
    // Goes on to the next slot.
    void advance() { next_ = (next_ + 1) % count_; }
    // Other transfers may wait for the reserve, so it must not be kept while another lock is taken.
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
    // Without host memory in the context nothing is ever staged.
    explicit Staging(Allocator* pool) : pool_(pool) {}
    ~Staging();
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    [[nodiscard]] bool has_reserve();
    // May wait for memory.
    [[nodiscard]] Result<void> allocate_reserve();

    // For a transfer of `bytes` bytes. Fails only when there is no reserve.
    [[nodiscard]] Result<StagingSlots> take(uint64_t bytes);
    // How many bytes of such a transfer are staged at a time.
    [[nodiscard]] static uint64_t chunk_bytes(uint64_t bytes);

private:
    friend class StagingSlots;
    void give_back(StagingSlots& slots) noexcept;

    Allocator* const pool_;
    Mutex mutex_;  // held by the slots that use the reserve
    std::optional<Block> reserve_ POLDER_GUARDED_BY(mutex_);
    std::array<driver::Timepoint, StagingSlots::count_max> emptied_ POLDER_GUARDED_BY(mutex_);  // of the reserve
    uint32_t next_ POLDER_GUARDED_BY(mutex_) = 0;  // likewise
};

}  // namespace polder::memory
