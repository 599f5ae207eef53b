// Eviction: removes replicas from a full memory, so that a command finds room. Bytes that no other memory holds are copied elsewhere first.
//
// A victim is a replica of any context. Mapped replicas are never victims, and replicas that the requesting command uses only as
// the last resort (domain_reserve.cpp). The next use of a replica is known from commands that were enqueued and wait for events.
// Replicas without a known next use are evicted first: those whose bytes are stale or held elsewhere too (they are dropped), then
// the least recently used (they are written back). After them follows the replica whose next use is furthest away
// (L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", 1966). Bytes are written back to the
// application's memory, else to host memory, else to another device that has room.
//
// Contexts that request the same memory have equal shares of it; a context that is within its share loses nothing (space/shares.h).
//
// A search examines all replicas in the space. Where there are many, one search serves many commands: it plans the next victims
// (VictimPlan), and later commands check and evict victims of the plan. So the number of replicas that a command examines is bounded on average.
//
// No thread waits for a device: writing back waits, on its queue, for the commands that use the bytes, and the next user of the memory
// waits for the writing. The caller has the turn of the memory and no lock. Eviction takes one storage's lock at a time, and takes
// allocation guards of storages only when they are free.
#include "domain_impl.h"
#include "prepared.h"
#include "space/shares.h"

#include <base/log.h>
#include <base/scope_exit.h>

#include <algorithm>
#include <tuple>
#include <vector>

namespace polder::memory {
namespace {

struct Candidate {
    StorageImpl* storage = nullptr;
    ByteRange range;  // of the replica
    EvictionCost cost = EvictionCost::none;
    uint64_t next_use = 0;
    uint64_t last_use = 0;
    size_t found = 0;  // position in the search; older storages come first, as far as their order is known

    [[nodiscard]] VictimKey key(uint64_t recent_since) const {
        const bool is_known = ~next_use != 0;
        return {is_known, is_known && last_use > recent_since, is_known ? EvictionCost::none : cost, ~next_use, cost,
                last_use};
    }
};

// A candidate with the keys by which candidates are sorted.
struct Ranked {
    Shares::Order order;  // of the storage's context
    VictimKey key;
    Candidate candidate;
    bool operator<(const Ranked& other) const {
        return std::tie(order, key, candidate.found) < std::tie(other.order, other.key, other.candidate.found);
    }
};

std::vector<Ranked> ranked(std::span<const Candidate> candidates, uint64_t recent_since, const Shares& shares) {
    std::vector<Ranked> all;
    all.reserve(candidates.size());
    for (const Candidate& candidate : candidates)
        all.push_back({shares.order_of(&candidate.storage->owner()), candidate.key(recent_since), candidate});
    std::ranges::sort(all, std::less{});
    return all;
}

Shares shares_of(const DomainImpl& asking, SpaceId space, std::span<const Use> keep,
                 std::span<const Candidate> candidates) {
    uint64_t own = 0;
    for (const Use& use : keep)
        own += use.range.size();
    Shares shares{&asking, own};
    for (const Candidate& candidate : candidates) {
        const DomainImpl& owner = candidate.storage->owner();
        shares.add(&owner, candidate.range.size(), [&] { return owner.asks_for(space); });
    }
    shares.divide(asking.space(space).most_bytes());
    return shares;
}

// The bytes of `range` that only `space` holds.
SmallVector<ByteRange, 2> only_in(const StorageImpl& storage, ByteRange range, SpaceId space) {
    SmallVector<ByteRange, 2> only;
    storage.residency().visit(range, [&](ByteRange piece, const RangeState& state) {
        if (!(state.holders == SpaceSet{space}))
            return;
        if (!only.empty() && only.back().end == piece.begin)
            only.back().end = piece.end;
        else
            only.push_back(piece);
    });
    return only;
}

// The same, but forgets holders to which a transfer has failed. This may split pieces; the caller merges them.
SmallVector<ByteRange, 2> settled_only_in(StorageImpl& storage, ByteRange range, SpaceId space) {
    storage.residency().prepare({&range, 1}, 0);
    return only_in(storage, range, space);
}

bool is_kept(const StorageImpl& storage, ByteRange range, std::span<const Use> keep) {
    return std::ranges::any_of(keep,
                               [&](const Use& use) { return use.storage == &storage && range.contains(use.range); });
}

bool can_move(const StorageImpl& storage, const Replica& replica) {
    if (storage.is_pinned(replica.space) || (replica.space.is_host() && storage.is_mapped()))
        return false;
    return replica.block || (replica.space.is_host() && storage.stretch());
}

// Appends the replicas of `storage` that may be evicted. The parts of a stretch are one candidate. Called with the storage's lock.
void add_candidates(StorageImpl& storage, SpaceId space, std::span<const Use> keep, std::vector<Candidate>& all) {
    const ByteRange everything{0, storage.size().value};
    const bool is_stretch = space.is_host() && storage.stretch();
    bool any_kept = false;
    const size_t first = all.size();
    storage.replicas().visit(space, everything, [&](const Replica& replica) {
        any_kept = any_kept || is_kept(storage, replica.range, keep);
        if (!can_move(storage, replica) || is_kept(storage, replica.range, keep))
            return;
        const bool is_alone = !only_in(storage, replica.range, space).empty();
        const EvictionCost cost = is_alone ? EvictionCost::writing_back : EvictionCost::none;
        all.push_back(
            {&storage, replica.range, cost, storage.next_use(space, replica.range), replica.last_use, all.size()});
    });
    if (!is_stretch || all.size() == first)
        return;
    Candidate whole = all[first];
    whole.range = everything;
    for (size_t i = first + 1; i < all.size(); ++i) {
        whole.cost = std::max(whole.cost, all[i].cost);
        whole.next_use = std::min(whole.next_use, all[i].next_use);
        whole.last_use = std::max(whole.last_use, all[i].last_use);
    }
    all.resize(first);
    if (!any_kept)
        all.push_back(whole);
}

}  // namespace

std::string RoomRequest::report() const {
    return "; moved " + std::to_string(compacted_bytes) + " bytes within the memory, evicted " +
           std::to_string(dropped_bytes) + " bytes, for which " + std::to_string(written_bytes) +
           " bytes were written back";
}

uint64_t DomainImpl::evict(const EvictionRequest& request, RoomRequest& room) {
    space(request.space).shortage().begin();
    // Most victims of the plan have to be written back.
    const uint64_t freed = request.write_back == WriteBack::allowed ? evict_planned(request, room) : 0;
    return freed < request.bytes ? freed + search_and_evict(request, request.bytes - freed, room) : freed;
}

// Examines the storages of the plan one after the other and removes each of them from the plan.
uint64_t DomainImpl::evict_planned(const EvictionRequest& request, RoomRequest& room) {
    SpaceImpl& memory = space(request.space);
    const VictimPlan& plan = memory.plan();
    if (memory.shortage().uses() >= plan.ends_at)
        memory.residents().forget_plan();
    uint64_t freed = 0;
    std::vector<Candidate> candidates;
    while (freed < request.bytes) {
        const Residents::Claimed claimed{memory.residents(), Residents::Claimed::Which::first_of_plan};
        if (claimed.entries().empty())
            break;
        Residents::Entry& entry = *claimed.entries().front();
        candidates.clear();
        {
            const StorageGuard guard{*entry.storage};
            memory.residents().take_from_plan(entry);
            add_candidates(*entry.storage, request.space, request.keep, candidates);
        }
        memory.shortage().count_examined(1 + candidates.size());
        for (const Ranked& each : ranked(candidates, plan.recent_since, Shares{this, 0})) {
            if (freed >= request.bytes || each.key > plan.last)
                break;
            freed += evict_candidate(*entry.storage, each.candidate.range, request, room);
        }
    }
    return freed;
}

uint64_t DomainImpl::search_and_evict(const EvictionRequest& request, uint64_t bytes, RoomRequest& room) {
    SpaceImpl& memory = space(request.space);
    const Residents::Claimed claimed{memory.residents(), Residents::Claimed::Which::all};
    std::vector<Candidate> candidates;
    for (const Residents::Entry* entry : claimed.entries()) {
        const StorageGuard guard{*entry->storage};
        add_candidates(*entry->storage, request.space, request.keep, candidates);
    }
    const uint64_t count = candidates.size();
    memory.shortage().count_examined(claimed.entries().size() + count);
    const uint64_t uses = memory.shortage().uses();
    const uint64_t recent_since = uses - std::min(uses, count / VictimPlan::part);
    const Shares shares = shares_of(*this, request.space, request.keep, candidates);
    const std::vector<Ranked> order = ranked(candidates, recent_since, shares);
    uint64_t freed = 0;
    size_t next = 0;
    for (; next < count && freed < bytes; ++next) {
        const Candidate& candidate = order[next].candidate;
        if (candidate.cost == EvictionCost::none || request.write_back == WriteBack::allowed)
            freed += evict_candidate(*candidate.storage, candidate.range, request, room);
    }
    if (request.write_back == WriteBack::never || count < VictimPlan::from || next == count)
        return freed;
    const size_t end = std::min<size_t>(count, next + count / VictimPlan::part);
    memory.plan().last = {};
    memory.plan().recent_since = recent_since;
    memory.plan().ends_at = uses + count;
    for (; next < end; ++next) {
        StorageImpl& storage = *order[next].candidate.storage;
        if (!shares.may_be_planned(&storage.owner()))
            continue;
        memory.plan().last = std::max(memory.plan().last, order[next].key);
        const StorageGuard guard{storage};
        if (Residents::Entry* const entry = storage.resident_entry(request.space))
            memory.residents().plan(*entry);
    }
    return freed;
}

// True when a command of this context has had a turn of the memory, and the turns of others since were for less than `rounds` times the
// memory's size.
bool DomainImpl::asks_for(SpaceId space) const {
    constexpr uint64_t rounds = 4;
    SpaceImpl& memory = this->space(space);
    return memory.turns().asked_within(flows_[space.value], rounds * memory.most_bytes());
}

// Evicts a replica of a storage of any domain. Returns the bytes that became free.
uint64_t DomainImpl::evict_candidate(StorageImpl& storage, ByteRange range, const EvictionRequest& request,
                                     RoomRequest& room) {
    const bool is_guarded =
        std::ranges::any_of(request.guarded, [&](const Use& use) { return use.storage == &storage; });
    return storage.owner().evict_replica({storage, request.space, range, is_guarded}, request.write_back, room);
}

uint64_t DomainImpl::evict_replica(const Victim& victim, WriteBack write_back, RoomRequest& room) {
    StorageImpl& storage = victim.storage;
    if (!victim.is_guarded && !storage.try_begin_allocating(victim.space)) {
        room.busy.insert(victim.space);
        return 0;
    }
    const ScopeExit end{[&]() noexcept {
        if (!victim.is_guarded)
            storage.end_allocating(victim.space);
    }};
    constexpr int tries_max = 4;  // other commands may write the bytes again after each try
    for (int i = 0; i < tries_max; ++i) {
        SmallVector<ByteRange, 2> only;
        {
            const StorageGuard guard{storage};
            const Merged merged{storage.residency(), victim.range};
            only = settled_only_in(storage, victim.range, victim.space);
            if (only.empty()) {
                if (const auto dropped = drop_replicas(victim, room))
                    return *dropped;
                continue;
            }
            if (write_back == WriteBack::never || (storage.is_released() && !storage.leave_map_place()))
                return 0;
        }
        // After the first try, room for the whole replica: a command that keeps writing, such as a long copy, makes more bytes new each time.
        const ByteRange wanted = i == 0 ? ByteRange{only[0].begin, only.back().end} : victim.range;
        const auto target = place_for(storage, wanted, victim.space, room);
        if (!target)
            return 0;
        const StorageGuard guard{storage};
        if (storage.is_released() && !storage.leave_map_place())  // the application has released the storage since
            return 0;
        const Merged merged{storage.residency(), victim.range};
        only = settled_only_in(storage, victim.range, victim.space);
        const bool has_room =
            std::ranges::all_of(only, [&](ByteRange range) { return storage.find(*target, range).has_value(); });
        if (!has_room)
            continue;
        for (const ByteRange& range : only) {
            if (!write_back_range(storage, range, victim.space, *target))
                return 0;
            room.written_bytes += range.size();
            space(victim.space).shortage().count_written_back(range.size());
        }
        return drop_replicas(victim, room).value_or(0);
    }
    room.busy.insert(victim.space);
    return 0;
}

// False when the transfer fails because the device is lost. The bytes stay where they are then.
bool DomainImpl::write_back_range(StorageImpl& storage, ByteRange range, SpaceId from, SpaceId to) {
    SmallVector<Replica, 1> sources;
    storage.replicas().visit(from, range, [&](const Replica& known) { sources.push_back(known); });
    storage.residency().prepare({&range, 1}, 3);
    if (to == storage.map_place())
        storage.note_unknown_transfer();
    for (const Replica& source : sources)
        if (!transfer(storage, StorageRect::of(source.range.intersect(range)), {from, source.base}, to))
            return false;
    return true;
}

// Called with the storage's lock, when other spaces are known to hold all bytes of the victim, too. A transfer to such a space may have
// failed since: then it drops nothing and returns std::nullopt. Otherwise returns the bytes that became free.
std::optional<uint64_t> DomainImpl::drop_replicas(const Victim& victim, RoomRequest& room) {
    StorageImpl& storage = victim.storage;
    SmallVector<Replica, 1> replicas;
    storage.replicas().visit(victim.space, victim.range, [&](const Replica& known) {
        if (can_move(storage, known) && victim.range.contains(known.range))
            replicas.push_back(known);
    });
    bool is_needed = false;
    for (const Replica& replica : replicas)
        is_needed = is_needed || !settled_only_in(storage, replica.range, victim.space).empty();
    if (is_needed)
        return std::nullopt;
    // Does not merge the pieces, because merging checks again which transfers have failed. The caller merges them.
    for (const Replica& replica : replicas)
        storage.residency().drop(replica.range, victim.space);
    uint64_t bytes = 0;
    for (const Replica& replica : replicas) {
        bytes += replica.range.size();
        if (replica.block)
            storage.remove_replica(replica);
        if (trace::enabled()) [[unlikely]]
            storage.record_event(trace::Kind::evict, replica.range, victim.space);
        POLDER_LOG(memory, "storage %llu: [%llu, %llu) evicted from space %u", llu(storage.number()),
                   llu(replica.range.begin), llu(replica.range.end), victim.space.value);
    }
    if (!replicas.empty() && !replicas[0].block)
        storage.remove_stretch();
    if (bytes != 0) {
        storage.note_evicted(victim.space);
        storage.owner().space(victim.space).shortage().count_evicted(bytes);
    }
    room.dropped_bytes += bytes;
    return bytes;
}

std::optional<SpaceId> DomainImpl::place_for(StorageImpl& storage, ByteRange range, SpaceId from, RoomRequest& room) {
    const auto has_room = [&](SpaceId space) {
        if (has_memory(storage, range, space))
            return true;
        return space != application_space && mover_.space(space) && provide_at_once(storage, range, space, room);
    };
    if (storage.map_place() != from && has_room(storage.map_place()))
        return storage.map_place();
    if (!from.is_host() && mover_.space(host_space)) {
        if (has_room(host_space))
            return host_space;
        if (room.try_enter_host_turn(space(host_space))) {
            const Use keep{&storage, range};
            const EvictionRequest drop{host_space, range.size(), {&keep, 1}, {}, WriteBack::never};
            if (evict(drop, room) != 0 && has_room(host_space))
                return host_space;
        } else {
            room.needs_host_turn = true;
        }
    }
    for (uint32_t i = 1; i < application_space.value; ++i)
        if (SpaceId{i} != from && mover_.space(SpaceId{i}) && has_room(SpaceId{i}))
            return SpaceId{i};
    return std::nullopt;
}

bool DomainImpl::provide_at_once(StorageImpl& storage, ByteRange range, SpaceId space, RoomRequest& room) {
    const ChangeInProgress change{changes_in(space)};
    if (!storage.try_begin_allocating(space)) {
        room.busy.insert(space);
        return false;
    }
    const ScopeExit end{[&]() noexcept { storage.end_allocating(space); }};
    const Use use{&storage, range};
    const LeaseTerms terms{LeaseTerms::Consumer::device, nullptr, WhenFull::wait_for_turn};
    return add_memory({&use, 1}, space, terms, Linking::never).has_value();
}

}  // namespace polder::memory
