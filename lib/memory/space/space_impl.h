// The implementation of Space.
#pragma once

#include "allocation/host_pins.h"
#include "allocation/sparse.h"
#include "count_by_thread.h"
#include "fair_turns.h"
#include "hidden_queue.h"
#include "residents.h"
#include "shortage.h"
#include "victim_key.h"

#include <memory/space.h>

namespace polder::memory {

class SpaceImpl final : public Space {
public:
    // In host memory, `device` (which may be null) executes copies between places of the host.
    // `pins`: of host memory that is pinned; those of `pool`'s regions.
    SpaceImpl(SpaceId id, driver::Device* device, std::unique_ptr<Allocator> pool,
              std::unique_ptr<HostPins> pins = nullptr)
        : id_(id), device_(device), pins_(std::move(pins)), pool_(std::move(pool)),
          in_(device, driver::QueueRole::transfer_in), out_(device, driver::QueueRole::transfer_out) {}

    [[nodiscard]] SpaceId id() const override { return id_; }
    [[nodiscard]] driver::Device* device() const override { return id_.is_host() ? nullptr : device_; }
    [[nodiscard]] Allocator& pool() override { return *pool_; }
    void trim() override {
        sparse_.trim();
        pool_->trim();
    }
    [[nodiscard]] ByteCount total_bytes() const override;
    [[nodiscard]] ByteCount limit() const { return pool_->limit(); }
    [[nodiscard]] ByteCount free_bytes() const override { return pool_->free_bytes(); }

    [[nodiscard]] SpaceBudget budget() const override;
    [[nodiscard]] SpaceActivity activity() const override { return shortage_.activity(); }

    // Null where host memory is not pinned.
    [[nodiscard]] HostPins* pins() { return pins_.get(); }
    // Of host memory.
    [[nodiscard]] SparseMemory& sparse() { return sparse_; }
    // A command that evicts storages has the turn, so that no other command evicts what it needs. Taken before the locks of
    // storages, and before the turn of host memory. Contexts get equal shares.
    [[nodiscard]] FairTurns& turns() { return turns_; }
    // The storages whose memory here may be evicted.
    [[nodiscard]] Residents& residents() { return residents_; }
    // The state of eviction when the memory is full.
    [[nodiscard]] Shortage& shortage() { return shortage_; }
    // With the turn.
    [[nodiscard]] VictimPlan& plan() { return plan_; }

    // Storages whose memory here cannot be evicted for a moment because a search does not find it: a thread has leased it and not yet given
    // it to the storage, or the storage is being destroyed.
    [[nodiscard]] CountByThread& unlisted() { return unlisted_; }

    [[nodiscard]] HiddenQueues& transfers_in() { return in_; }
    [[nodiscard]] HiddenQueues& transfers_out() { return out_; }

private:
    SpaceId id_;
    driver::Device* device_;
    std::unique_ptr<HostPins> pins_;  // outlives the pool, which removes its regions
    std::unique_ptr<Allocator> pool_;
    SparseMemory sparse_{*pool_};
    FairTurns turns_;
    Shortage shortage_{*this};
    Residents residents_;
    VictimPlan plan_;
    CountByThread unlisted_;
    HiddenQueues in_;
    HiddenQueues out_;
};

}  // namespace polder::memory
