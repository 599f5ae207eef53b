// Domain: reserving the memory that a command needs.
//
// Requests that find room at once do not wait for each other. When the memory is full, requests are served in turn, with equal
// shares for contexts (FairTurns, add_memory_evicting). A request compacts the memory, evicts other storages, evicts what the
// command itself has there, waits for memory that was freed before, and then fails.
//
// No lock is held while an allocator is called: a full allocator waits for work in flight, and other threads must continue meanwhile.
// One thread at a time adds memory to a storage in one space (AllocationGuards).
#include "domain_impl.h"

#include <base/log.h>
#include <base/scope_exit.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace polder::memory {
namespace {

// The allocation guards of all storages of some uses, which are sorted by storage. While the thread waits for a guard, its
// ChangeInProgress has ended, so that other threads do not wait for it.
class AllocationGuards {
public:
    AllocationGuards(std::span<const Use> uses, SpaceId space, ChangeInProgress& change) : uses_(uses), space_(space) {
        for (size_t i = 0; i < uses_.size(); ++i)
            if (is_first(i) && !impl_of(uses_[i]).try_begin_allocating(space_)) {
                change.end();
                impl_of(uses_[i]).begin_allocating(space_);
                change.begin();
            }
    }
    ~AllocationGuards() {
        for (size_t i = 0; i < uses_.size(); ++i)
            if (is_first(i))
                impl_of(uses_[i]).end_allocating(space_);
    }
    AllocationGuards(const AllocationGuards&) = delete;
    AllocationGuards& operator=(const AllocationGuards&) = delete;

private:
    [[nodiscard]] bool is_first(size_t i) const { return i == 0 || uses_[i].storage != uses_[i - 1].storage; }
    const std::span<const Use> uses_;
    const SpaceId space_;
};

bool is_full(const Result<void>& added) {
    return !added && added.error().status() == Status::mem_object_allocation_failure;
}

// The least cost of a turn in FairTurns, in bytes: a turn takes time even when few bytes are missing.
constexpr uint64_t cost_min = uint64_t{64} << 10;

// Waits for the stretches that were freed before, and unmaps them.
void wait_for_stretches(SpaceImpl& memory) {
    for (memory.sparse().drain(); const auto pending = memory.sparse().oldest(); memory.sparse().drain())
        pending->queue->wait(pending->value);
}

// Other threads need microseconds for a change, unless the system does not run them. So this yields at first, then sleeps; each sleep is
// twice as long as the one before, up to 1/600 second.
void let_others_run(int waited) {
    constexpr int yields = 64;
    constexpr int doublings = 4;
    if (waited < yields)
        std::this_thread::yield();
    else
        std::this_thread::sleep_for(std::chrono::microseconds(100 << std::min(waited - yields, doublings)));
}

}  // namespace

bool DomainImpl::has_memory(const StorageImpl& storage, ByteRange range, SpaceId space) {
    if (storage.has_all(storage.place_of(space))) [[likely]]
        return true;
    if (!storage.has_replica(space))
        return false;
    const StorageGuard guard{const_cast<StorageImpl&>(storage)};
    return storage.find(space, range).has_value();
}

Result<void> DomainImpl::reserve(std::span<const Use> uses, SpaceId space, const driver::Queue* queue) {
    for (const Use& use : uses)
        if (!has_memory(impl(*use.storage), use.range, space)) [[unlikely]]
            return reserve_now(uses, space, {LeaseTerms::Consumer::device, queue});
    return {};
}

bool DomainImpl::is_reserved(const Storage& storage, ByteRange range, SpaceId space) const {
    return has_memory(static_cast<const StorageImpl&>(storage), range, space);
}

Result<void> DomainImpl::reserve_for_host(StorageImpl& storage) {
    const Use use{&storage, {0, storage.size().value}};
    return reserve_now({&use, 1}, host_space, {LeaseTerms::Consumer::host});
}

// The storage is new, but evictions of other threads find it as soon as it has memory.
Result<void> DomainImpl::write_initially(StorageImpl& storage, const std::byte* contents) {
    const ByteRange all{0, storage.size().value};
    const MapPin pin{storage};
    for (;;) {
        POLDER_TRY(reserve_for_host(storage));
        std::byte* target = nullptr;
        {
            const StorageGuard guard{storage};
            if (const auto found = storage.find(host_space, all))  // otherwise an earlier eviction has removed it
                target = found->host();
        }
        if (!target)
            continue;
        std::memcpy(target, contents, all.size());
        const StorageGuard guard{storage};
        storage.write_initially(host_space);
        return {};
    }
}

Result<MapPin> DomainImpl::reserve_map(Storage& storage, ByteRange range) {
    const SpaceId place = impl(storage).map_place();
    MapPin pin{storage};
    for (;;) {
        POLDER_TRY(reserve(storage, range, place, nullptr));
        const StorageGuard guard{storage};
        if (impl(storage).find(place, range))  // otherwise an eviction that began before the pin has removed it
            return pin;
    }
}

// Requests that find room at once do not wait for each other. The others are served in turn, also before later requests that would find
// room.
[[gnu::noinline]] Result<void> DomainImpl::reserve_now(std::span<const Use> uses, SpaceId space,
                                                       const LeaseTerms& terms, Turn turn) {
    if (space == application_space) [[unlikely]]
        return fail(Status::mem_object_allocation_failure, "the application's memory of a buffer that was released");
    SmallVector<Use, 2> sorted;
    if (uses.size() > 1) {
        sorted.append(uses);
        // All threads take guards in the same order, so that two commands never wait for each other.
        std::sort(sorted.begin(), sorted.end(), [](const Use& one, const Use& other) {
            return std::pair{one.storage, one.range.begin} < std::pair{other.storage, other.range.begin};
        });
        uses = sorted.view();
    }
    if (turn == Turn::held) [[unlikely]]
        return add_memory_evicting(uses, space, terms, Clock::now());
    if (this->space(space).turns().requested()) [[unlikely]]
        return reserve_in_turn(uses, space, terms, Tried::no);
    Result<void> added =
        uses.size() == 1 ? add_one_at_once(uses.front(), space, terms) : add_at_once(uses, space, terms);
    if (is_full(added)) [[unlikely]]
        return reserve_in_turn(uses, space, terms, Tried::yes);
    return added;
}

Result<void> DomainImpl::add_at_once(std::span<const Use> uses, SpaceId space, const LeaseTerms& terms) {
    const LeaseTerms at_once{terms.consumer, terms.queue, WhenFull::wait_for_turn};
    ChangeInProgress change{changes_in(space)};
    const AllocationGuards allocating{uses, space, change};
    return add_memory(uses, space, at_once);
}

// The common case of add_at_once.
[[gnu::always_inline]] inline Result<void> DomainImpl::add_one_at_once(const Use& use, SpaceId space,
                                                                       const LeaseTerms& terms) {
    StorageImpl& storage = impl(*use.storage);
    const LeaseTerms at_once{terms.consumer, terms.queue, WhenFull::wait_for_turn};
    ChangeInProgress change{changes_in(space)};
    if (!storage.try_begin_allocating(space)) [[unlikely]] {
        change.end();
        storage.begin_allocating(space);
        change.begin();
    }
    const ScopeExit end{[&]() noexcept { storage.end_allocating(space); }};
    if (storage.has_replica(space) || !needs_first_block(storage, use.range, space)) [[unlikely]]
        return add_memory({&use, 1}, space, at_once);
    POLDER_TRY(reserve_staging(space));
    return add_first_block(storage, space, at_once);
}

[[gnu::noinline]] Result<void> DomainImpl::reserve_in_turn(std::span<const Use> uses, SpaceId space,
                                                           const LeaseTerms& terms, Tried tried) {
    FairTurns& turns = this->space(space).turns();
    const Clock::time_point began = Clock::now();
    enter_turn(uses, space, tried);
    bool is_quiet = tried == Tried::no;
    const ScopeExit leave{[&]() noexcept { is_quiet ? turns.leave_quietly() : turns.leave(); }};
    if (is_quiet) {
        Result<void> added = add_at_once(uses, space, terms);
        if (!is_full(added))
            return added;
        turns.insist(flows_[space.value]);
        is_quiet = false;
    }
    return add_memory_evicting(uses, space, terms, began);
}

void DomainImpl::enter_turn(std::span<const Use> uses, SpaceId space, Tried tried) {
    this->space(space).turns().enter(flows_[space.value], std::max(cost_min, missing_bytes(uses, space)), tried);
}

// The steps for a full memory: try the allocator without waiting; compact; evict other storages; evict all storages, those of the command
// too; wait for memory that was freed before; fail.
Result<void> DomainImpl::add_memory_evicting(std::span<const Use> uses, SpaceId space, const LeaseTerms& terms,
                                             Clock::time_point began) {
    retry_now();  // storages whose destruction failed for lack of host memory may still have memory here
    RoomRequest room{began, changes_in(space)};
    const AllocationGuards allocating{uses, space, room.change};
    LeaseTerms next = terms;
    next.when_full = WhenFull::wait_for_turn;
    Result<void> added = add_memory(uses, space, next);
    if (!is_full(added))
        return added;
    SpaceImpl& memory = this->space(space);
    // Freed memory counts against a limit until its commands are complete, so only waiting shows whether there is room.
    if (space.is_host())
        next.when_full = WhenFull::wait;
    if (compact(uses, space, room))
        added = add_memory(uses, space, next);
    bool has_waited = false;
    bool begins_anew = false;
    while (is_full(added) && can_evict_ && missing_bytes(uses, space) <= memory.most_bytes()) {
        const uint64_t needed = missing_bytes(uses, space);
        const uint64_t free = memory.free_bytes().value;
        // Memory that was freed before is enough, so no eviction is necessary.
        if (space.is_host() && free >= needed && terms.when_full == WhenFull::wait &&
            !std::exchange(has_waited, true)) {
            wait_for_stretches(memory);
            added = add_memory(uses, space, terms);
            continue;
        }
        room.busy = {};
        room.needs_host_turn = false;
        room.without_changes([&] {  // before the search, which sees the changes that are complete by then
            if (memory.changes().nonzero_parts() != 0)
                room.busy.insert(space);
        });
        uint64_t freed = evict({space, free < needed ? needed - free : 1, uses, uses}, room);
        if (freed != 0) {
            room.vain_waits = 0;
        } else if (!wait_for_others(room, uses)) {
            // The memory that the command has there already may split the free memory. So all of it is evicted, once.
            if (std::exchange(begins_anew, true))
                break;
            freed = evict({space, ~uint64_t{0}, {}, uses}, room);
            if (missing_bytes(uses, space) > memory.most_bytes())
                break;
        }
        wait_for_stretches(memory);
        added = add_memory(uses, space, next);
    }
    room.leave_host_turn();
    if (is_full(added) && terms.when_full == WhenFull::wait) {
        wait_for_stretches(memory);
        added = add_memory(uses, space, terms);
    }
    if (!is_full(added))
        return added;
    std::string report{added.error().detail()};
    if (room.has_evicted())
        report += room.report();
    if (trace::enabled()) [[unlikely]]
        trace::record_refusal({.space = space, .size = ByteCount{missing_bytes(uses, space)}}, report);
    return fail(Status::mem_object_allocation_failure, std::move(report));
}

bool DomainImpl::wait_for_others(RoomRequest& room, std::span<const Use> uses) {
    if (room.needs_host_turn && !room.has_host_turn()) {
        uint64_t cost = cost_min;
        for (const Use& use : uses)
            cost = std::max(cost, use.range.size());
        room.enter_host_turn(space(host_space), flows_[host_space.value], cost);
        return true;
    }
    if (room.busy.empty() || ++room.vain_waits > RoomRequest::vain_waits_max)
        return false;
    bool is_in_time = true;
    room.without_changes([&] {
        int waited = 0;
        for (SpaceSet rest = room.busy; !rest.empty() && is_in_time; rest.erase(rest.first())) {
            EarlierChanges earlier{space(rest.first()).changes()};
            do {
                let_others_run(waited++);
                is_in_time = Clock::now() < room.give_up_at;
            } while (is_in_time && !earlier.have_ended());
        }
    });
    return is_in_time;
}

void DomainImpl::note_uses(std::span<const Use> uses, SpaceId space) noexcept {
    const uint64_t number = this->space(space).shortage().next_use();
    for (const Use& use : uses)
        if (!impl(*use.storage).is_in_place_of(space))
            impl(*use.storage).note_use(space, use.range, number);
}

Result<void> DomainImpl::Provision::reserve_again() {
    if (losses_ == 1)
        return domain_.reserve(uses_, space_, queue_);
    if (!has_turn_) {
        domain_.enter_turn(uses_, space_);
        has_turn_ = true;
    }
    return domain_.reserve_now(uses_, space_, {LeaseTerms::Consumer::device, queue_}, Turn::held);
}

bool DomainImpl::Provision::is_there() {
    for (const Use& use : uses_)
        if (!impl(*use.storage).find(impl(*use.storage).place_of(space_), use.range))
            return false;
    if (space_ != application_space && domain_.space(space_).shortage().has_begun()) [[unlikely]]
        domain_.note_uses(uses_, space_);
    return true;
}

}  // namespace polder::memory
