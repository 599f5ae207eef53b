// The implementation of Space.
#pragma once

#include "allocation/sparse.h"
#include "hidden_queue.h"
#include "shortage.h"

#include <memory/space.h>
#include <memory/turns.h>

namespace polder::memory {

class SpaceImpl final : public Space {
public:
    // In host memory, `device` (which may be null) executes copies between places of the host.
    SpaceImpl(SpaceId id, driver::Device* device, std::unique_ptr<Allocator> pool)
        : id_(id), device_(device), pool_(std::move(pool)), in_(device, driver::QueueRole::transfer_in),
          out_(device, driver::QueueRole::transfer_out) {}

    [[nodiscard]] SpaceId id() const override { return id_; }
    [[nodiscard]] driver::Device* device() const override { return id_.is_host() ? nullptr : device_; }
    [[nodiscard]] Allocator& pool() override { return *pool_; }
    [[nodiscard]] ByteCount total_bytes() const override;
    [[nodiscard]] ByteCount limit() const { return pool_->limit(); }
    [[nodiscard]] ByteCount free_bytes() const override { return pool_->free_bytes(); }

    [[nodiscard]] SpaceBudget budget() const override;
    [[nodiscard]] SpaceActivity activity() const override { return shortage_.activity(); }

    // Of host memory.
    [[nodiscard]] SparseMemory& sparse() { return sparse_; }
    // A command that evicts storages has the turn, so that no other command evicts what it needs. Taken before the locks of
    // storages, and before the turn of host memory.
    [[nodiscard]] Turns& turns() { return turns_; }
    // The state of eviction when the memory is full.
    [[nodiscard]] Shortage& shortage() { return shortage_; }

    [[nodiscard]] HiddenQueues& transfers_in() { return in_; }
    [[nodiscard]] HiddenQueues& transfers_out() { return out_; }

private:
    SpaceId id_;
    driver::Device* device_;
    std::unique_ptr<Allocator> pool_;
    SparseMemory sparse_{*pool_};
    Turns turns_;
    Shortage shortage_{*this};
    HiddenQueues in_;
    HiddenQueues out_;
};

}  // namespace polder::memory
