// The implementation of Space, with the parts of one memory that the domains of all contexts share. Any thread.
#pragma once

#include "allocation/adaptive_pins.h"
#include "allocation/host_pins.h"
#include "allocation/sparse.h"
#include "count_by_thread.h"
#include "fair_turns.h"
#include "hidden_queue.h"
#include "last_maps.h"
#include "residents.h"
#include "shortage.h"
#include "victim_key.h"

#include <memory/space.h>

namespace polder::memory {

// How host memory is registered with devices: at most one of these is set (AllocationPolicy::Pinned).
struct HostMemoryPins {
    std::unique_ptr<HostPins> always;
    std::unique_ptr<AdaptivePins> by_use;
};

class SpaceImpl final : public Space {
public:
    // In host memory, `device` (which may be null) executes copies between places of the host.
    // `pins` list `pool`'s regions.
    SpaceImpl(SpaceId id, driver::Device* device, std::unique_ptr<Allocator> pool, HostMemoryPins pins = {})
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
    // The most bytes that all storages together can have here.
    [[nodiscard]] uint64_t most_bytes() const { return std::min(total_bytes().value, limit().value); }

    [[nodiscard]] SpaceBudget budget() const override;
    [[nodiscard]] SpaceActivity activity() const override { return shortage_.activity(); }

    // Null unless all host memory is pinned (AllocationPolicy::Pinned::always).
    [[nodiscard]] HostPins* pins() { return pins_.always.get(); }
    // Null unless host memory is pinned by use (AllocationPolicy::Pinned::by_use).
    [[nodiscard]] AdaptivePins* adaptive_pins() { return pins_.by_use.get(); }
    // Used only in host memory.
    [[nodiscard]] SparseMemory& sparse() { return sparse_; }
    // A command that evicts storages has the turn, so that no other command evicts memory that it needs. Taken before the locks of
    // storages, and before the turn of host memory. Contexts get equal shares.
    [[nodiscard]] FairTurns& turns() { return turns_; }
    // The storages whose memory here may be evicted.
    [[nodiscard]] Residents& residents() { return residents_; }
    // The state of eviction when the memory is full.
    [[nodiscard]] Shortage& shortage() { return shortage_; }
    // Guarded by the turn.
    [[nodiscard]] VictimPlan& plan() { return plan_; }

    // Counts the threads that are changing which storages have memory here (change_in_progress.h).
    [[nodiscard]] CountByThread& changes() { return changes_; }

    // Used only in host memory.
    [[nodiscard]] LastMaps& last_maps() { return last_maps_; }

    [[nodiscard]] HiddenQueues& transfers_in() { return in_; }
    [[nodiscard]] HiddenQueues& transfers_out() { return out_; }

private:
    SpaceId id_;
    driver::Device* device_;
    HostMemoryPins pins_;  // declared before the pool, whose destructor removes its regions from them
    std::unique_ptr<Allocator> pool_;
    SparseMemory sparse_{*pool_, pins_.by_use.get()};
    FairTurns turns_;
    Shortage shortage_{*this};
    Residents residents_;
    VictimPlan plan_;
    CountByThread changes_;
    LastMaps last_maps_;
    HiddenQueues in_;
    HiddenQueues out_;
};

}  // namespace polder::memory
