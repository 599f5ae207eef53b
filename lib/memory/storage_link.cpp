// Linked memory: the host and one device with unified memory share a block, which belongs to one of them at a time, range by range.
//
// The rules are those of DPC++'s memory manager: memory is linked when exactly one side is the host, neither side is linked yet, and
// the device has unified memory; the application's pointer is used when it is suitable. Instead of a copy, the driver changes the
// owner (driver::UnifiedMemory), which moves no bytes.
//
// When one of the two spaces holds bytes, the residency lists both as holders, so that no bytes are ever copied between them. A change of
// the owner waits for everything that uses the range on both sides, and later commands on the new owner's side wait for the change. When
// the change fails, these commands fail, the owner stays, and the next command on that side makes the change again (decision 72).
#include "domain_impl.h"
#include "storage_impl.h"

#include <base/log.h>
#include <base/scope_exit.h>

namespace polder::memory {

void StorageImpl::link(SpaceId space) {
    const ByteRange all{0, size().value};
    make_room_for_replicas(1, space);
    linked_.reset(new Linked{space, {size(), Owner{host_space}}});
    SpaceSet both{host_space};
    both.insert(space);
    residency_.link(both);
    add_replica({space, 0, all, base(host_space, all), std::nullopt});
}

void StorageImpl::Owner::settle() noexcept {
    size_t known = 0;
    for (; known < changes.size() && changes[known].done.is_complete(); ++known) {
        if (has_failed(changes[known].done))
            has_failed_touches = true;
        else
            space = changes[known].to;
    }
    changes.erase(changes.begin(), changes.begin() + static_cast<ptrdiff_t>(known));
}

Result<void> StorageImpl::own(ByteRange range, SpaceId space) {
    if (!linked_ || (!space.is_host() && space != linked_->space))
        return {};
    RangeMap<Owner>& owners = linked_->owners;
    bool is_settled = true;
    owners.visit(range, [&](ByteRange, const Owner& owner) {
        is_settled = is_settled && owner.space == space && owner.changes.empty() && !owner.has_failed_touches;
    });
    if (is_settled) [[likely]]
        return {};
    SmallVector<ByteRange, 2> parts;
    SmallVector<ByteRange, 2> to_forget;
    owners.prepare(range);
    const ScopeExit merge{[&]() noexcept { owners.merge({&range, 1}); }};
    owners.apply(range, [&](ByteRange part, Owner& owner) {
        owner.settle();
        const bool changes = owner.last() != space;
        if (changes) {
            owner.changes.reserve(owner.changes.size() + 1);
            parts.push_back(part);
        }
        if (owner.has_failed_touches && (changes || owner.changes.empty()))
            to_forget.push_back(part);
    });
    // Room for the touch of the change, and for the touches of the command, which has prepared its ranges before.
    residency_.prepare(parts.view(), 5);
    residency_.prepare(to_forget.view(), 5);
    for (const ByteRange& part : to_forget) {
        residency_.forget_failed_owner_changes(part);
        owners.apply(part, [](ByteRange, Owner& owner) { owner.has_failed_touches = false; });
    }
    if (parts.empty())
        return {};
    SpaceImpl& memory = this->space(linked_->space);
    driver::UnifiedMemory& unified = *memory.device()->unified_memory();
    HiddenQueues& queues = space.is_host() ? memory.transfers_out() : memory.transfers_in();
    for (const ByteRange& part : parts) {
        WaitList before;
        // Notes when an earlier change has failed since.
        owners.visit(part, [&](ByteRange, const Owner& owner) {
            if (!owner.changes.empty())
                before.need(owner.changes.back().done);
        });
        residency_.all_waits(part, host_space, before);
        residency_.all_waits(part, linked_->space, before);
        const driver::Memory bytes{base(host_space, part).plus(part.begin), part.size()};
        POLDER_ASSIGN(lease, queues.lease(before.view()));
        const driver::Timepoint done = space.is_host() ? unified.map(lease.queue(), bytes, {before.view()})
                                                       : unified.unmap(lease.queue(), bytes, {before.view()});
        lease.submitted(done);
        residency_.commit_owner_change(part, space, done);
        owners.apply(part, [&](ByteRange, Owner& owner) { owner.changes.push_back({space, done}); });
        memory.shortage().count_owner_changes(space.is_host() ? 1 : 0, space.is_host() ? 0 : 1);
        POLDER_LOG(memory, "storage %llu: [%llu, %llu) belongs to space %u", static_cast<unsigned long long>(number()),
                   static_cast<unsigned long long>(part.begin), static_cast<unsigned long long>(part.end), space.value);
    }
    return {};
}

// Called when the storage ends. A map that could not be submitted counts as failed: its entry has no timepoint.
void StorageImpl::note_last_maps(DeviceAddress base) {
    LastMaps& last = space(host_space).last_maps();
    SmallVector<LastMaps::Entry, 2> entries;
    linked_->owners.visit({0, size().value}, [&](ByteRange range, const Owner& owner) {
        if (owner.changes.empty() && owner.space.is_host())
            return;
        const driver::Memory memory{base.plus(range.begin), range.size()};
        entries.push_back(
            {memory, &space(linked_->space), owner.changes.empty() ? driver::Timepoint{} : owner.changes.back().done});
    });
    for (const LastMaps::Entry& entry : entries)
        last.add(entry);
}

Result<void> StorageImpl::inherit_maps(ByteRange range, DeviceAddress base, Timepoints* after) {
    const auto again = [](const LastMaps::Entry& entry) -> Result<driver::Timepoint> {
        POLDER_ASSIGN(lease, entry.device->transfers_out().lease({}));
        const driver::Timepoint done =
            entry.device->device()->unified_memory()->map(lease.queue(), entry.memory, driver::Submission{});
        lease.submitted(done);
        entry.device->shortage().count_owner_changes(1, 0);
        return done;
    };
    SmallVector<driver::Timepoint, 2> maps;
    POLDER_TRY(space(host_space)
                   .last_maps()
                   .visit({base.plus(range.begin), range.size()}, again,
                          [&](const LastMaps::Entry& entry) { maps.push_back(entry.done); }));
    residency_.prepare({&range, 1}, static_cast<uint32_t>(maps.size()));
    residency_.forget_failed_owner_changes(range);
    for (const driver::Timepoint& done : maps) {
        if (after)
            after->push_back(done);
        residency_.commit_owner_change(range, host_space, done);
        has_inherited_maps_ = true;
    }
    return {};
}

Result<void> StorageImpl::inherit_maps_again() {
    SmallVector<Replica, 2> blocks;
    replicas_.visit(host_space, {0, size().value}, [&](const Replica& replica) {
        if (replica.block)
            blocks.push_back(replica);
    });
    has_inherited_maps_ = false;
    for (const Replica& replica : blocks) {
        const Result<void> inherited = inherit_maps(replica.range, replica.base, nullptr);
        if (!inherited) {
            has_inherited_maps_ = true;
            return inherited;
        }
    }
    return {};
}

// The caller has the allocation guard of the storage in `space`. When host memory has no room, the device's own memory is used.
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
            return;  // another device is linked already
        const auto address = storage.find(host_space, all);
        if (!address)
            continue;  // an eviction that began before the pin has removed the memory: try again
        if (!replica_alignment(space).divides(address->value))
            break;  // the application's memory, which does not suit the device
        storage.link(space);
        return;
    }
    if (!was_pinned)
        storage.unpin(host_space);
}

Result<void> DomainImpl::own(StorageImpl& storage, ByteRange range, SpaceId space) {
    if (!has_unified_) [[likely]]
        return {};
    if (storage.has_inherited_maps()) [[unlikely]]
        POLDER_TRY(storage.inherit_maps_again());
    if (!storage.is_linked()) [[likely]]
        return {};
    return storage.own(range, space);
}

}  // namespace polder::memory
