// Staging: host memory through which bytes go from one device to another, in slots that are filled and emptied in turn.
//
// One per domain, used under its lock, so nothing here waits: a transfer gets a block of the host's pool if there is
// one at once, else the domain's reserve, which was allocated when memory of a second device was first asked for.
// Transfers share the reserve by waiting, on their queues, for each slot to be emptied by the one before.
#pragma once

#include <memory/block_pool.h>

#include <array>
#include <optional>
#include <polder/driver.h>
#include <polder/result.h>

namespace polder::memory {

class Staging {
public:
    // More than two, so that neither link waits when a thread is late.
    static constexpr uint32_t slots_max = 4;

    // Memory for one transfer, to be given back after it was submitted.
    struct Slots {
        DeviceAddress base;
        uint64_t slot_bytes = 0;
        uint64_t chunk_bytes = 0;  // to be put into a slot at most
        uint32_t count = 0;
        // What filling a slot has to wait for; kept up to date by the transfer.
        std::array<driver::Timepoint, slots_max> emptied;
        std::optional<Block> block;  // none: the reserve

        [[nodiscard]] DeviceAddress slot(uint32_t index) const { return base.plus(index * slot_bytes); }
    };

    // Without host memory in the context nothing is ever staged.
    explicit Staging(BlockPool* pool) : pool_(pool) {}
    ~Staging();
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    [[nodiscard]] bool has_reserve() const { return reserve_.has_value(); }
    // Not under the lock: may wait for memory.
    [[nodiscard]] Result<Block> allocate_reserve() const;
    // Goes back to the pool if there is a reserve already.
    void give_reserve(const Block& block);

    // For a transfer of `bytes` bytes. Fails only when there is no reserve.
    [[nodiscard]] Result<Slots> take(uint64_t bytes);
    void give_back(const Slots& slots, driver::Timepoint all_emptied);

private:
    BlockPool* const pool_;
    std::optional<Block> reserve_;
    std::array<driver::Timepoint, slots_max> emptied_;  // of the reserve
};

}  // namespace polder::memory
