// StorageImpl: creation from application memory or initial contents, memory in each space, announcements for eviction, and the
// destructor, which frees each block with the timepoints that still use it.
#include "domain_impl.h"
#include "storage_impl.h"

#include <base/log.h>
#include <memory/trace.h>

#include <new>
#include <utility>

namespace polder::memory {
namespace {

std::atomic<uint64_t> last_number{0};

}  // namespace

Result<Ref<Storage>> Storage::create(Domain& domain, ByteCount size, const StorageOptions& options) {
    retry_now();
    auto storage = make_ref<StorageImpl>(static_cast<DomainImpl&>(domain), size, options.in_place);
    POLDER_LOG(memory, "storage %llu: created, %llu bytes", static_cast<unsigned long long>(storage->number()),
               static_cast<unsigned long long>(size.value));
    if (trace::enabled()) [[unlikely]]
        storage->record_event(trace::Kind::storage_create, {0, size.value});
    if (options.application_memory)
        storage->add_application_memory(options.application_memory);
    if (options.initial_contents)
        POLDER_TRY(static_cast<DomainImpl&>(domain).write_initially(*storage, options.initial_contents));
    if (trace::enabled() && (options.application_memory || options.initial_contents)) [[unlikely]]
        DomainImpl::trace_transfer(*storage, StorageRect::of({0, size.value}), storage->map_place(),
                                   storage->map_place(), {}, DomainImpl::Transferring::writing);
    return Ref<Storage>{std::move(storage)};
}

StorageImpl::StorageImpl(DomainImpl& domain, ByteCount size, SpaceSet in_place)
    : domain_(domain), residency_(size), in_place_(in_place) {
    domain_.promise(static_cast<int64_t>(size.value));
}

Domain& StorageImpl::domain() const { return domain_; }

uint64_t Storage::give_number() const {
    uint64_t number = 0;
    const uint64_t fresh = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
    return number_.compare_exchange_strong(number, fresh, std::memory_order_relaxed) ? fresh : number;
}

void StorageImpl::wait_to_allocate(SpaceId space) noexcept {
    const uint64_t bit = SpaceSet{space}.bits;
    allocation_waiters_.fetch_add(1, std::memory_order_relaxed);
    for (uint64_t before; (before = allocating_.fetch_or(bit, std::memory_order_acq_rel)) & bit;)
        allocating_.wait(before, std::memory_order_relaxed);
    allocation_waiters_.fetch_sub(1, std::memory_order_relaxed);
}

namespace {

// Calls `collect` to list the timepoints in flight. When the host has no memory for the list, waits for all of them instead. Used for
// replicas that move or are evicted; the requesting command waits then anyway.
template <class Collect>
void collect_or_wait(const Residency& residency, WaitList& waits, Collect&& collect) noexcept {
    try {
        collect(waits);
    } catch (const std::bad_alloc&) {
        waits.reset(nullptr);
        residency.wait_for_all();
    }
}

}  // namespace

void StorageImpl::add_application_memory(std::byte* memory) {
    const bool in_place = block_alignment.divides(DeviceAddress::of(memory).value);
    map_place_ = in_place ? host_space : application_space;
    add_replica({map_place_, 0, {0, size().value}, DeviceAddress::of(memory), std::nullopt});
    write_initially(map_place_);
}

Residents::Entry* StorageImpl::resident_entry(SpaceId space) noexcept {
    for (Residents::Entry* entry = &first_entry_; entry && entry->storage;
         entry = entry->another.load(std::memory_order_acquire))
        if (entry->space == space)
            return entry;
    return nullptr;
}

void StorageImpl::make_room_for_replicas(uint32_t count, SpaceId space) {
    replicas_.make_room(count);
    if (!domain_.can_evict() || resident_entry(space))
        return;
    const bool is_first = first_entry_.storage == nullptr;
    Residents::Entry& entry = is_first ? first_entry_ : *new Residents::Entry;
    entry.space = space;
    entry.storage = this;
    if (is_first)
        return;
    entry.another.store(first_entry_.another.load(std::memory_order_relaxed), std::memory_order_relaxed);
    first_entry_.another.store(&entry, std::memory_order_release);
}

void StorageImpl::leave_list(SpaceId space) noexcept {
    Residents::Entry* const entry = resident_entry(space);
    if (entry && !has_replica(space))
        domain_.space(space).residents().remove(*entry);
}

void StorageImpl::add_replica(const Replica& replica) noexcept {
    replicas_.insert(replica);
    if (replica.space == map_place_)
        map_address_.store(replica.base.host(), std::memory_order_release);
    if (replica.block)  // it was not joined with another one
        note_space(replica);
    else
        note_spaces();
    if (replica.block || (replica.space.is_host() && stretch_))
        if (Residents::Entry* const entry = resident_entry(replica.space))
            domain_.space(replica.space).residents().add(*entry);
    if (trace::enabled() && replica.block) [[unlikely]]
        record_event(trace::Kind::replica, replica.range, replica.space, replica.block->address);
}

void StorageImpl::remove_replica(const Replica& replica) noexcept {
    const Replica removed = replica;
    replicas_.erase(removed.space, removed.range.begin);
    note_spaces();
    leave_list(removed.space);
    give_back(removed);
}

void StorageImpl::remove_stretch() noexcept {
    const Replica* known = nullptr;
    while ((known = replicas_.any_of(host_space)))
        replicas_.erase(host_space, known->range.begin);
    note_spaces();
    leave_list(host_space);
    give_back_stretch();
}

void StorageImpl::note_space(const Replica& added) noexcept {
    const uint64_t bit = SpaceSet{added.space}.bits;
    replica_spaces_.store(replica_spaces_.load(std::memory_order_relaxed) | bit, std::memory_order_release);
    if (added.range.size() == size().value)
        whole_spaces_.store(whole_spaces_.load(std::memory_order_relaxed) | bit, std::memory_order_release);
}

void StorageImpl::note_spaces() noexcept {
    SpaceSet any;
    SpaceSet whole;
    for (const Replica& known : replicas_) {
        any.insert(known.space);
        if (known.range.size() == size().value)
            whole.insert(known.space);
    }
    replica_spaces_.store(any.bits, std::memory_order_release);
    whole_spaces_.store(whole.bits, std::memory_order_release);
}

bool StorageImpl::run_when_idle(ByteRange range, CompletionCallback callback) noexcept {
    WaitList waits;
    try {
        const StorageGuard guard{*this};
        residency_.all_waits(range, waits);
    } catch (const std::bad_alloc&) {
        return false;
    }
    return try_run_when_complete(waits.view(), callback);
}

bool StorageImpl::is_idle(ByteRange range) noexcept {
    const StorageGuard guard{*this};
    bool idle = true;
    residency_.visit(range, [&](ByteRange, const RangeState& state) {
        for (const Touch& touch : state.touches.view())
            idle = idle && touch.when().is_complete();
    });
    return idle;
}

void StorageImpl::wait_until_idle() {
    WaitList waits;
    {
        const StorageGuard guard{*this};
        residency_.all_waits(waits);
    }
    for (const driver::Timepoint& point : waits.view())
        point.queue->wait(point.value);
}

// A transfer in flight to or from the place of maps; a default Timepoint when there is none. Called with the lock.
driver::Timepoint StorageImpl::transfer_at_map_place() const {
    driver::Timepoint next;
    residency_.visit({0, size().value}, [&](ByteRange, const RangeState& state) {
        for (const Touch& touch : state.touches.view())
            if (touch.space == map_place_ && (static_cast<uint8_t>(touch.kind) & any_hidden) != 0 &&
                !touch.when().is_complete())
                next = touch.when();
    });
    return next;
}

// Called after the application has released its last handle: a waiting command, or a complete one that its queue still refers to, may
// keep the storage longer. When other memories hold all bytes, the application's memory stops being a replica, and later evictions write
// to the library's memory. Returns false, and changes nothing, when the application's memory is shared with a device, is pinned by a map or
// a waiting command (MapPin), or is used in place by devices.
bool StorageImpl::leave_map_place() noexcept {
    const ByteRange all{0, size().value};
    const Replica* const replica = replicas_.find(map_place_, all);
    if (linked_ || !in_place_.empty() || is_mapped() || !replica || replica->block)
        return false;
    residency_.prepare({&all, 1}, 0);  // forgets holders to which transfers have failed; splits no piece
    bool is_needed = false;
    residency_.visit(all, [&](ByteRange, const RangeState& state) {
        is_needed = is_needed || state.holders == SpaceSet{map_place_};
    });
    if (is_needed)
        return false;
    residency_.drop(all, map_place_);
    residency_.merge({&all, 1});
    replicas_.erase(map_place_, 0);
    note_spaces();
    is_released_ = false;
    return true;
}

void StorageImpl::remove_handle() noexcept {
    if (handles_.fetch_sub(1, std::memory_order_acq_rel) != 1 || !in_place_.empty())
        return;
    driver::Timepoint next;
    do {
        if (next.queue)
            next.queue->wait(next.value);
        const StorageGuard guard{*this};
        is_released_ = true;
        next = has_unknown_transfers_ ? transfer_at_map_place() : driver::Timepoint{};
        if (!next.queue)
            static_cast<void>(leave_map_place());
    } while (next.queue);
}

bool StorageImpl::validate() const {
    bool valid = residency_.validate() && replicas_.validate();
    residency_.visit({0, size().value}, [&](ByteRange range, const RangeState& state) {
        for (SpaceSet rest = state.holders; !rest.empty(); rest.erase(rest.first())) {
            uint64_t held = 0;
            replicas_.visit(rest.first(), range,
                            [&](const Replica& replica) { held += replica.range.intersect(range).size(); });
            valid = valid && held == range.size();
        }
    });
    return valid;
}

void StorageImpl::record_event(trace::Kind kind, ByteRange range, SpaceId space, DeviceAddress address) const {
    trace::Fields fields;
    fields.kind = kind;
    fields.space = space;
    fields.storage = number();
    fields.address = kind == trace::Kind::replica ? address.value : range.begin;
    fields.size = range.size();
    fields.value = range.begin;
    trace::record(fields);
}

// --- destruction ---

StorageImpl::~StorageImpl() {
    POLDER_LOG(memory, "storage %llu: destroyed", static_cast<unsigned long long>(number()));
    if (first_entry_.another.load(std::memory_order_acquire)) [[unlikely]]
        delete_other_entries();
}

[[gnu::noinline]] void StorageImpl::delete_other_entries() noexcept {
    Residents::Entry* entry = first_entry_.another.load(std::memory_order_relaxed);
    while (entry)
        delete std::exchange(entry, entry->another.load(std::memory_order_relaxed));
}

void StorageImpl::operator delete(StorageImpl* storage, std::destroying_delete_t) noexcept {
    if (trace::enabled()) [[unlikely]]
        storage->record_event(trace::Kind::storage_destroy, {});
    storage->domain_.promise(-static_cast<int64_t>(storage->size().value));
    if ((storage->was_never_used() && !storage->first_entry_.storage) || storage->end_unlisted()) [[likely]] {
        storage->destroy();
        return;
    }
    storage->spaces_ = storage->domain_.space_table();
    retry_until_done(*storage);
}

// Removes the storage from the lists of residents, so that eviction does not find it any more, then calls try_to_end.
bool StorageImpl::end_unlisted() noexcept {
    if (!first_entry_.storage)
        return try_to_end();
    SpaceSet changed;
    changed.bits = replica_spaces_.load(std::memory_order_relaxed);
    changed.erase(application_space);
    const auto count = [&](int64_t change) {
        for (SpaceSet rest = changed; !rest.empty(); rest.erase(rest.first()))
            space(rest.first()).changes().add(change);
    };
    count(1);
    leave_lists();
    const bool ended = try_to_end();
    count(-1);
    return ended;
}

void StorageImpl::leave_lists() noexcept {
    do {
        for (Residents::Entry* entry = &first_entry_; entry; entry = entry->another.load(std::memory_order_acquire))
            space(entry->space).residents().remove(*entry);
    } while (!Residents::has_left(first_entry_));
}

void StorageImpl::destroy() noexcept {
    this->~StorageImpl();
    Recycled<StorageImpl>::operator delete(this);
}

bool StorageImpl::try_again() noexcept {
    if (!try_to_end())
        return false;
    destroy();
    return true;
}

// Frees each block with the timepoints of the commands that use it. The application's callback is called after all commands.
bool StorageImpl::try_to_end() noexcept {
    if (was_never_used())
        return true;
    try {
        // A shared block must belong to the host when its next user gets it.
        if (linked_) {
            static_cast<void>(own({0, size().value}, host_space));
            if (const Replica* const block = replicas_.find(host_space, {0, size().value}); block && block->block)
                note_last_maps(block->base);
        }
        WaitList all;
        if (destroyed_.function)
            residency_.all_waits(all);
        while (!replicas_.empty()) {
            const Replica& replica = replicas_.last();
            if (replica.block)
                space(replica.space).pool().free_after(*replica.block, uses_of(replica.range, replica.space));
            replicas_.remove_last();
        }
        if (stretch_) {
            Timepoints uses = uses_of({0, size().value}, host_space);
            space(host_space).sparse().free(std::move(stretch_), std::move(uses));
        }
        return !destroyed_.function || try_run_when_complete(all.view(), destroyed_);
    } catch (const std::bad_alloc&) {
        return false;
    }
}

Timepoints StorageImpl::uses_of(ByteRange range, SpaceId space) const {
    Timepoints uses;
    if (const RangeState* const state = residency_.only(); state && !linked_) [[likely]] {
        state->touches.append_in_flight(space, uses);
        return uses;
    }
    if (residency_.is_idle())
        return uses;
    WaitList waits;
    residency_.all_waits(range, space, waits);
    if (linked_ && space.is_host())
        residency_.all_waits(range, linked_->space, waits);
    uses.append(waits.view());
    return uses;
}

SpaceImpl& StorageImpl::space(SpaceId id) const { return spaces_ ? *(*spaces_)[id.value] : domain_.space(id); }

// --- memory that a living storage gives back ---

void StorageImpl::give_back(const Replica& replica) noexcept {
    if (!replica.block)
        return;
    WaitList here;
    collect_or_wait(residency_, here,
                    [&](WaitList& waits) { residency_.all_waits(replica.range, replica.space, waits); });
    domain_.space(replica.space).pool().free(*replica.block, here.view());
}

void StorageImpl::give_back_stretch() noexcept {
    Timepoints uses;
    try {
        uses = uses_of({0, size().value}, host_space);
    } catch (const std::bad_alloc&) {
        residency_.wait_for_all();
    }
    domain_.space(host_space).sparse().free(std::move(stretch_), std::move(uses));
}

}  // namespace polder::memory
