// Linked memory: the host and one device with unified memory share a block, which belongs to one of them at a time, range by range.
//
// The rules are those of DPC++'s memory manager: memory is linked when exactly one side is the host, neither side is linked yet, and
// the device has unified memory; the application's pointer is used when it is suitable. Instead of a copy, the driver changes the
// owner (driver::UnifiedMemory), which moves no bytes.
//
// The residency lists both spaces as holders of what one of them holds, so that nothing is ever copied between them. A change of the
// owner waits for everything that uses the range on both sides, and later commands wait for the change as for a transfer.
#include "domain_impl.h"
#include "storage_impl.h"

#include <base/log.h>

namespace polder::memory {

void StorageImpl::link(SpaceId space) {
    const ByteRange all{0, size().value};
    make_room_for_replicas(1, space);
    linked_ = std::make_unique<Linked>(Linked{space, {size(), Owner{host_space}}});
    SpaceSet both{host_space};
    both.insert(space);
    residency_.link(both);
    add_replica({space, 0, all, base(host_space, all), std::nullopt});
}

Result<StorageImpl::OwnerChanges> StorageImpl::own(ByteRange range, SpaceId space) {
    OwnerChanges changes;
    if (!linked_ || (!space.is_host() && space != linked_->space))
        return changes;
    SmallVector<ByteRange, 2> parts;
    linked_->owners.visit(range, [&](ByteRange part, const Owner& owner) {
        if (owner.space != space)
            parts.push_back(part);
    });
    if (parts.empty()) [[likely]]
        return changes;
    SpaceImpl& memory = this->space(linked_->space);
    driver::UnifiedMemory& unified = *memory.device()->unified_memory();
    HiddenQueues& queues = space.is_host() ? memory.transfers_out() : memory.transfers_in();
    linked_->owners.prepare(parts.view());
    // One touch, and room for those of the command that follows, which has prepared its ranges before.
    residency_.prepare(parts.view(), 5);
    for (const ByteRange& part : parts) {
        WaitList before;
        residency_.all_waits(part, host_space, before);
        residency_.all_waits(part, linked_->space, before);
        const driver::Memory bytes{base(host_space, part).plus(part.begin), part.size()};
        POLDER_ASSIGN(lease, queues.lease(before.view()));
        const driver::Timepoint done = space.is_host() ? unified.map(lease.queue(), bytes, {before.view()})
                                                       : unified.unmap(lease.queue(), bytes, {before.view()});
        lease.submitted(done);
        residency_.commit_moved(part, space, done);
        linked_->owners.apply(part, [&](ByteRange, Owner& owner) { owner.space = space; });
        ++(space.is_host() ? changes.to_host : changes.to_device);
        POLDER_LOG(memory, "storage %llu: [%llu, %llu) belongs to space %u", static_cast<unsigned long long>(number()),
                   static_cast<unsigned long long>(part.begin), static_cast<unsigned long long>(part.end), space.value);
    }
    linked_->owners.merge(parts.view());
    return changes;
}

void StorageImpl::count_owner_changes(const OwnerChanges& changes) const {
    space(linked_->space).shortage().count_owner_changes(changes.to_host, changes.to_device);
}

// Having the allocation guard of the storage in `space`. Without room in host memory, the device's own memory is used.
void DomainImpl::link_if_possible(StorageImpl& storage, SpaceId space) {
    {
        const StorageGuard guard{storage};
        if (storage.is_linked() || storage.has_replica(space) || storage.is_pinned(space))
            return;
    }
    const bool was_pinned = storage.pin(host_space);
    const ByteRange all{0, storage.size().value};
    while (reserve(storage, host_space)) {
        const StorageGuard guard{storage};
        if (storage.is_linked())
            return;  // another device was faster
        const auto address = storage.find(host_space, all);
        if (!address)
            continue;  // an eviction had begun before
        if (!replica_alignment(space).divides(address->value))
            break;  // the application's memory, which does not suit the device
        storage.link(space);
        return;
    }
    if (!was_pinned)
        storage.unpin(host_space);
}

Result<void> DomainImpl::own(StorageImpl& storage, ByteRange range, SpaceId space) {
    if (!has_unified_ || !storage.is_linked()) [[likely]]
        return {};
    POLDER_ASSIGN(changes, storage.own(range, space));
    storage.count_owner_changes(changes);
    return {};
}

}  // namespace polder::memory
