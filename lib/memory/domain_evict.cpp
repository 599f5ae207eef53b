// Eviction: what storages have in a full memory goes elsewhere, so that a command finds room.
//
// Victims are replicas of any context, not those that the asking command uses (but as the last resort, domain_reserve.cpp), nor
// mapped ones. The next use is known for commands
// that were enqueued and are held back. Replicas without a known use go first: what is stale or held elsewhere too is dropped, then
// the least recently used one is written back. Then goes the replica whose next use is furthest away
// (L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", 1966). Bytes go to where
// the application's memory is, else to the host, else to another device that has room.
//
// Nothing waits for a device: writing back waits, on its queue, for the commands that use the bytes, and the memory is
// used again behind that. The caller has the turn of the memory and no lock. Eviction itself takes the guards that adding
// memory takes only when they are free, and one storage's lock at a time.
#include "domain_impl.h"

#include <base/log.h>
#include <base/scope_exit.h>

#include <algorithm>
#include <tuple>
#include <vector>

namespace polder::memory {
namespace {

unsigned long long llu(uint64_t number) { return number; }

enum class Cost : uint8_t { none, writing_back };

// Of all candidates, so many were used recently.
constexpr uint64_t recent_part = 16;

struct Candidate {
    StorageImpl* storage = nullptr;
    ByteRange range;  // of the replica
    Cost cost = Cost::none;
    uint64_t next_use = 0;
    uint64_t last_use = 0;
    size_t found = 0;  // older ones first, as far as that is known
};

// Those without a known use first: what costs nothing, then the least recently used ones. Of the others, the furthest next use.
// What was used last goes after those: writing it back would wait for its last use, and the next use for that, so that the copies in
// both directions and the kernels would run one after the other.
struct GoesFirst {
    uint64_t recent_since = 0;

    [[nodiscard]] auto key(const Candidate& candidate) const {
        const bool is_known = ~candidate.next_use != 0;
        return std::tuple{is_known,
                          is_known && candidate.last_use > recent_since,
                          is_known ? Cost::none : candidate.cost,
                          ~candidate.next_use,
                          candidate.cost,
                          candidate.last_use,
                          candidate.found};
    }
    bool operator()(const Candidate& one, const Candidate& other) const { return key(one) < key(other); }
};

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

bool is_kept(const StorageImpl& storage, ByteRange range, std::span<const Use> keep) {
    return std::ranges::any_of(keep,
                               [&](const Use& use) { return use.storage == &storage && range.contains(use.range); });
}

bool can_move(const StorageImpl& storage, const Replica& replica) {
    if (storage.is_pinned(replica.space) || (replica.space.is_host() && storage.is_mapped()))
        return false;
    return replica.block || (replica.space.is_host() && storage.stretch());
}

// With the storage's lock. The parts of a stretch go together.
void add_candidates(StorageImpl& storage, SpaceId space, std::span<const Use> keep, std::vector<Candidate>& all) {
    const ByteRange everything{0, storage.size().value};
    const bool is_stretch = space.is_host() && storage.stretch();
    bool any_kept = false;
    const size_t first = all.size();
    storage.replicas().visit(space, everything, [&](const Replica& replica) {
        any_kept = any_kept || is_kept(storage, replica.range, keep);
        if (!can_move(storage, replica) || is_kept(storage, replica.range, keep))
            return;
        const Cost cost = only_in(storage, replica.range, space).empty() ? Cost::none : Cost::writing_back;
        all.push_back({&storage, replica.range, cost, storage.next_use(space, replica.range), replica.last_use, 0});
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

std::string Evicted::report() const {
    return "; moved " + std::to_string(compacted_bytes) + " bytes within the memory, evicted " +
           std::to_string(dropped_bytes) + " bytes, for which " + std::to_string(written_bytes) +
           " bytes were written back";
}

uint64_t DomainImpl::evict(const EvictionRequest& request, Evicted& evicted) {
    const SpaceId space = request.space;
    this->space(space).shortage().begin();
    const Residents::Claimed claimed{[&](const StorageImpl& storage) { return storage.has_replica(space); }};
    std::vector<Candidate> candidates;
    for (StorageImpl* storage : claimed.storages()) {
        const StorageGuard guard{*storage};
        add_candidates(*storage, space, request.keep, candidates);
    }
    for (size_t i = 0; i < candidates.size(); ++i)
        candidates[i].found = i;
    const uint64_t uses = this->space(space).shortage().uses();
    std::sort(candidates.begin(), candidates.end(),
              GoesFirst{uses - std::min<uint64_t>(uses, candidates.size() / recent_part)});
    const auto is_guarded = [&](const StorageImpl& storage) {
        return std::ranges::any_of(request.guarded, [&](const Use& use) { return use.storage == &storage; });
    };
    uint64_t freed = 0;
    for (const Candidate& candidate : candidates) {
        if (freed >= request.bytes)
            break;
        StorageImpl& storage = *candidate.storage;
        if (candidate.cost == Cost::none || request.write_back == WriteBack::allowed)
            freed += storage.owner().evict_replica({storage, space, candidate.range, is_guarded(storage)},
                                                   request.write_back, evicted);
    }
    return freed;
}

uint64_t DomainImpl::evict_replica(const Victim& victim, WriteBack write_back, Evicted& evicted) {
    StorageImpl& storage = victim.storage;
    if (!victim.is_guarded && !storage.try_begin_allocating(victim.space)) {
        evicted.is_busy = true;
        return 0;
    }
    const ScopeExit end{[&]() noexcept {
        if (!victim.is_guarded)
            storage.end_allocating(victim.space);
    }};
    constexpr int tries_max = 4;  // commands may write the bytes again and again in between
    for (int i = 0; i < tries_max; ++i) {
        SmallVector<ByteRange, 2> only;
        {
            const StorageGuard guard{storage};
            only = only_in(storage, victim.range, victim.space);
            if (only.empty())
                return drop_replicas(victim, evicted);
            if (write_back == WriteBack::never || storage.is_released())
                return 0;
        }
        const auto target = place_for(storage, {only[0].begin, only.back().end}, victim.space, evicted);
        if (!target)
            return 0;
        const StorageGuard guard{storage};
        if (storage.is_released())  // since
            return 0;
        only = only_in(storage, victim.range, victim.space);
        const bool has_room =
            std::ranges::all_of(only, [&](ByteRange range) { return storage.find(*target, range).has_value(); });
        if (!has_room)
            continue;
        for (const ByteRange& range : only) {
            if (!write_back_range(storage, range, victim.space, *target))
                return 0;
            evicted.written_bytes += range.size();
            space(victim.space).shortage().count_written_back(range.size());
        }
        return drop_replicas(victim, evicted);
    }
    evicted.is_busy = true;
    return 0;
}

// False where the device is lost: the bytes stay.
bool DomainImpl::write_back_range(StorageImpl& storage, ByteRange range, SpaceId from, SpaceId to) {
    SmallVector<Replica, 1> sources;
    storage.replicas().visit(from, range, [&](const Replica& known) { sources.push_back(known); });
    storage.residency().prepare({&range, 1}, 3);
    for (const Replica& source : sources)
        if (!transfer(storage, StorageRect::of(source.range.intersect(range)), {from, source.base}, to))
            return false;
    return true;
}

// With the storage's lock, when `victim.space` is the only holder of nothing there.
uint64_t DomainImpl::drop_replicas(const Victim& victim, Evicted& evicted) {
    StorageImpl& storage = victim.storage;
    SmallVector<Replica, 1> replicas;
    storage.replicas().visit(victim.space, victim.range, [&](const Replica& known) {
        if (can_move(storage, known) && victim.range.contains(known.range))
            replicas.push_back(known);
    });
    uint64_t bytes = 0;
    for (const Replica& replica : replicas) {
        storage.residency().prepare({&replica.range, 1}, 0);
        storage.residency().drop(replica.range, victim.space);
        storage.residency().merge({&replica.range, 1});
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
    evicted.dropped_bytes += bytes;
    return bytes;
}

std::optional<SpaceId> DomainImpl::place_for(StorageImpl& storage, ByteRange range, SpaceId from, Evicted& evicted) {
    const auto has_room = [&](SpaceId space) {
        if (has_memory(storage, range, space))
            return true;
        return space != application_space && mover_.space(space) && provide_at_once(storage, range, space, evicted);
    };
    if (storage.map_place() != from && has_room(storage.map_place()))
        return storage.map_place();
    if (!from.is_host() && mover_.space(host_space)) {
        if (has_room(host_space))
            return host_space;
        Turns& turns = space(host_space).turns();
        if (turns.try_enter()) {
            const Use keep{&storage, range};
            const ScopeExit leave{[&]() noexcept { turns.leave(); }};
            const EvictionRequest drop{host_space, range.size(), {&keep, 1}, {}, WriteBack::never};
            if (evict(drop, evicted) != 0 && has_room(host_space))
                return host_space;
        } else {
            evicted.is_busy = true;
        }
    }
    for (uint32_t i = 1; i < application_space.value; ++i)
        if (SpaceId{i} != from && mover_.space(SpaceId{i}) && has_room(SpaceId{i}))
            return SpaceId{i};
    return std::nullopt;
}

bool DomainImpl::provide_at_once(StorageImpl& storage, ByteRange range, SpaceId space, Evicted& evicted) {
    if (!storage.try_begin_allocating(space)) {
        evicted.is_busy = true;
        return false;
    }
    const ScopeExit end{[&]() noexcept { storage.end_allocating(space); }};
    const Use use{&storage, range};
    const LeaseTerms terms{LeaseTerms::Consumer::device, nullptr, WhenFull::wait_for_turn};
    return add_memory({&use, 1}, space, terms, Linking::never).has_value();
}

}  // namespace polder::memory
