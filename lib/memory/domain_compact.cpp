// Compaction: moves replicas within a device's memory, when its free memory is enough for a request but scattered.
//
// The allocator chooses a part of the memory from which only few bytes must move (Allocator::open_hole). Either all replicas in it get
// memory elsewhere, or none moves. A move works like the growth of a replica: the device copies the bytes, the old block becomes free
// after everything that uses it, including the copy, and later commands wait on their device. So no thread waits for a device.
//
// Only idle replicas move, because a copy that waits for work in flight would delay the request more than eviction. They may be mapped
// (the application has the address of another replica) and may belong to any context. Pinned memory and memory that the requesting
// command uses stay. Host memory is not compacted: the application may know its addresses, and its regions need not be neighbours.
//
// The caller has the turn of the memory and no storage's lock, as for eviction (domain_evict.cpp).
#include "domain_impl.h"

#include <base/log.h>
#include <base/scope_exit.h>

#include <algorithm>
#include <vector>

namespace polder::memory {
namespace {

struct Movable {
    StorageImpl* storage = nullptr;
    ByteRange range;
    Block block;
};

bool is_idle(const StorageImpl& storage, ByteRange range) {
    bool idle = true;
    storage.residency().visit(range, [&](ByteRange, const RangeState& state) {
        idle = idle &&
               std::ranges::all_of(state.touches.view(), [](const Touch& touch) { return touch.when().is_complete(); });
    });
    return idle;
}

// Appends the replicas of `storage` that may move. Called with the storage's lock.
void add_movable(StorageImpl& storage, SpaceId space, std::span<const Use> keep, std::vector<Movable>& all) {
    const bool is_kept = std::ranges::any_of(keep, [&](const Use& use) { return use.storage == &storage; });
    if (is_kept || storage.is_pinned(space))
        return;
    storage.replicas().visit(space, {0, storage.size().value}, [&](const Replica& replica) {
        if (replica.block && is_idle(storage, replica.range))
            all.push_back({&storage, replica.range, *replica.block});
    });
}

}  // namespace

bool DomainImpl::compact(std::span<const Use> uses, SpaceId space, RoomRequest& room) {
    SpaceImpl& memory = this->space(space);
    const Alignment alignment = replica_alignment(space);
    const uint64_t needed = missing_bytes(uses, space, alignment);
    if (space.is_host() || needed == 0 || memory.free_bytes().value < needed)
        return false;
    uint64_t& skipped = memory.plan().compactions_skipped;
    if (skipped > 0) {
        --skipped;
        return false;
    }
    const Residents::Claimed claimed{memory.residents(), Residents::Claimed::Which::all};
    std::vector<Movable> movable;
    for (const Residents::Entry* entry : claimed.entries()) {
        const StorageGuard guard{*entry->storage};
        add_movable(*entry->storage, space, uses, movable);
    }
    memory.shortage().count_examined(claimed.entries().size() + movable.size());
    std::vector<Block> blocks;
    for (const Movable& each : movable)
        blocks.push_back(each.block);
    std::vector<uint32_t> chosen;
    if (!memory.pool().open_hole({ByteCount{needed}, alignment}, blocks, chosen)) {
        if (movable.size() >= VictimPlan::from)
            skipped = movable.size() / VictimPlan::part;
        return false;
    }
    const ScopeExit close{[&]() noexcept { memory.pool().close_hole(); }};
    std::vector<LeaseRequest> requests;
    for (const uint32_t index : chosen)
        requests.push_back({ByteCount{movable[index].range.size()}, alignment});
    std::vector<Lease> leases(requests.size());
    const LeaseTerms terms{LeaseTerms::Consumer::device, nullptr, WhenFull::wait_for_turn};
    if (!requests.empty() && !memory.pool().lease(requests, terms, leases))
        return false;
    uint64_t moved_bytes = 0;
    size_t next = 0;
    // Frees the blocks that no replica moved to, also when std::bad_alloc is thrown.
    const ScopeExit give_back{[&]() noexcept {
        for (; next < leases.size(); ++next)
            memory.pool().free(leases[next].block, leases[next].after.view());
    }};
    for (; next < leases.size(); ++next) {
        const Movable& each = movable[chosen[next]];
        if (!each.storage->owner().move_replica({*each.storage, space, each.range}, each.block, leases[next]))
            break;
        moved_bytes += each.range.size();
    }
    room.compacted_bytes += moved_bytes;
    memory.shortage().count_compacted(moved_bytes);
    POLDER_LOG(memory, "space %u: compacted, %llu bytes moved for %llu bytes in one piece", space.value,
               static_cast<unsigned long long>(moved_bytes), static_cast<unsigned long long>(needed));
    return true;
}

// The storage belongs to this domain. False, with the lease unused, when the replica was changed or used since it was chosen.
bool DomainImpl::move_replica(const Victim& victim, const Block& block, Lease& lease) {
    StorageImpl& storage = victim.storage;
    if (!storage.try_begin_allocating(victim.space))
        return false;
    const ScopeExit end{[&]() noexcept { storage.end_allocating(victim.space); }};
    const StorageGuard guard{storage};
    const Replica* const known = storage.replicas().find(victim.space, victim.range);
    if (!known || !(known->range == victim.range) || !known->block || known->block->address != block.address ||
        storage.is_pinned(victim.space) || !is_idle(storage, victim.range))
        return false;
    Replica moved = *known;
    const Replica before = moved;
    moved.base = DeviceAddress{lease.block.address.value - victim.range.begin};
    moved.block = lease.block;
    storage.make_room_for_replicas(1, victim.space);
    storage.residency().begin_in(victim.range, victim.space, lease.after.view());
    if (!gather(storage, before, moved.base, lease))
        return false;
    storage.remove_replica(before);
    storage.add_replica(moved);
    return true;
}

}  // namespace polder::memory
