// Domain: adding memory to storages, whole or for the ranges in use.
//
// `want` finds what is missing for each range. There are two ways to add it. A block comes from the allocator of the
// memory space (add_blocks); where it replaces smaller blocks of the same storage, their bytes are copied into it within the
// device (gather). A large storage in host memory has a stretch of addresses that never move instead, and each part
// of it that is used is charged to the limit of host memory (ChargedParts). A failure leaves the storages as they were.
//
// The caller has the storages' allocation guards and a ChangeInProgress (domain_reserve.cpp), and none of their locks.
#include "domain_impl.h"

#include <base/log.h>
#include <base/scope_exit.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace polder::memory {
namespace {

// Converts a number for %llu of printf.
// The leases of one request. Its destructor frees those that were not attached to a storage.
class LeaseGroup {
public:
    LeaseGroup(Allocator& pool, size_t count)
        : pool_(pool), many_(count > 1 ? count : 0), count_(count), first_(count) {}
    ~LeaseGroup() {
        for (; first_ < count_; ++first_)
            pool_.free(first().block, first().after.view());
    }
    LeaseGroup(const LeaseGroup&) = delete;
    LeaseGroup& operator=(const LeaseGroup&) = delete;

    [[nodiscard]] std::span<Lease> all() { return many_.empty() ? std::span{&one_, 1} : std::span{many_}; }
    [[nodiscard]] Lease& first() { return all()[first_]; }
    void pop() { ++first_; }
    // To be called when the pool has filled all leases.
    void begin() { first_ = 0; }

private:
    Allocator& pool_;
    Lease one_;
    std::vector<Lease> many_;
    const size_t count_;
    size_t first_;
};

// `range` extended to whole pages, but not beyond the end of the storage.
ByteRange pages_of(ByteRange range, const StorageImpl& storage) {
    const Alignment page = SparseMemory::page();
    return {range.begin & ~(page.value - 1), std::min(page.round_up(range.end), storage.size().value)};
}

Error no_host_memory(const SpaceImpl& host, uint64_t bytes) {
    return Error{Status::mem_object_allocation_failure, "out of host memory: asked for " + std::to_string(bytes) +
                                                            " bytes, free " + std::to_string(host.free_bytes().value)};
}

constexpr const char* nothing_promised = "the system commits no more host memory";

// The common case of ChargedParts, in one pass: the first part of a storage that has no memory on the host. When a step fails, the
// stretch is freed.
Result<void> add_first_part(SpaceImpl& host, StorageImpl& storage, ByteRange part) {
    POLDER_ASSIGN(stretch, host.sparse().reserve(storage.size()));
    const ScopeExit give_back{[&]() noexcept {
        if (stretch)
            host.sparse().free(std::move(stretch), {});
    }};
    if (!host.sparse().charge(*stretch, part))
        return fail(no_host_memory(host, part.size()));
    if (!stretch->back(part))
        return fail(Status::mem_object_allocation_failure, nothing_promised);
    stretch->prepare(part);
    if (host.pins())
        stretch->pin(*host.pins(), part);
    POLDER_LOG(memory, "storage %llu: [%llu, %llu) in space 0 at 0x%llx", llu(storage.number()), llu(part.begin),
               llu(part.end), llu(stretch->address().value + part.begin));
    const StorageGuard guard{storage};
    storage.make_room_for_replicas(1, host_space);
    const DeviceAddress address = stretch->address();
    storage.set_stretch(std::move(stretch));
    storage.add_replica({host_space, 0, part, address, std::nullopt});
    return {};
}

}  // namespace

// Parts of stretches of host memory that were charged to the limit. The destructor discharges those that were not added to a storage.
class DomainImpl::ChargedParts {
public:
    explicit ChargedParts(SpaceImpl& host) : host_(host) {}
    ~ChargedParts() {
        for (const Charged& charged : charged_)
            host_.sparse().discharge(*charged.storage->stretch(), charged.part);
    }
    ChargedParts(const ChargedParts&) = delete;
    ChargedParts& operator=(const ChargedParts&) = delete;

    [[nodiscard]] Result<void> charge(const Wanted& wanted);
    // Adds all charged parts to their storages. Called when nothing can fail any more.
    void arrive() noexcept;

private:
    struct Charged {
        StorageImpl* storage;
        ByteRange part;
    };
    using Gaps = SmallVector<ByteRange, 2>;
    // Appends the parts of `range` where the storage has no memory. Needs no lock, because only this thread adds memory to it.
    static void find_gaps(const StorageImpl& storage, ByteRange range, Gaps& gaps) {
        uint64_t at = range.begin;
        storage.replicas().visit(host_space, range, [&](const Replica& known) {
            if (at < known.range.begin)
                gaps.push_back({at, known.range.begin});
            at = std::max(at, known.range.end);
        });
        if (at < range.end)
            gaps.push_back({at, range.end});
    }

    SpaceImpl& host_;
    SmallVector<Charged, 1> charged_;
};

Result<void> DomainImpl::ChargedParts::charge(const Wanted& wanted) {
    StorageImpl& storage = *wanted.storage;
    if (!storage.stretch()) {
        POLDER_ASSIGN(stretch, host_.sparse().reserve(storage.size()));
        const StorageGuard guard{storage};
        storage.set_stretch(std::move(stretch));
    }
    const ByteRange range = wanted.growth.range;
    Gaps gaps;
    {
        const StorageGuard guard{storage};
        find_gaps(storage, range, gaps);
        storage.make_room_for_replicas(gaps.size(), host_space);
    }
    charged_.reserve(charged_.size() + gaps.size());
    for (const ByteRange gap : gaps) {
        if (!host_.sparse().charge(*storage.stretch(), gap))
            return fail(no_host_memory(host_, gap.size()));
        charged_.push_back({&storage, gap});
    }
    if (!storage.stretch()->back(range))
        return fail(Status::mem_object_allocation_failure, nothing_promised);
    storage.stretch()->prepare(range);
    return {};
}

void DomainImpl::ChargedParts::arrive() noexcept {
    for (const Charged& charged : charged_) {
        StorageImpl& storage = *charged.storage;
        const DeviceAddress address = storage.stretch()->address();
        // Another use of the same command may have added a block that covers all of the storage.
        const bool is_covered = [&] {
            const StorageGuard guard{storage};
            return storage.replicas().find(host_space, charged.part) != nullptr;
        }();
        if (is_covered) {
            host_.sparse().discharge(*storage.stretch(), charged.part);
            continue;
        }
        // Without the lock, because pinning takes long. Only this thread adds memory to the storage.
        if (host_.pins())
            storage.stretch()->pin(*host_.pins(), charged.part);
        POLDER_LOG(memory, "storage %llu: [%llu, %llu) in space 0 at 0x%llx", llu(storage.number()),
                   llu(charged.part.begin), llu(charged.part.end), llu(address.value + charged.part.begin));
        const StorageGuard guard{storage};
        storage.add_replica({host_space, 0, charged.part, address, std::nullopt});
    }
    charged_.clear();
}

uint64_t DomainImpl::missing_bytes(std::span<const Use> uses, SpaceId space, Alignment rounding) const {
    WantedList blocks;
    WantedList parts;
    for (const Use& use : uses)
        want(use, space, blocks, parts);
    uint64_t bytes = 0;
    for (const WantedList* list : {&blocks, &parts})
        for (const Wanted& wanted : *list)
            bytes += rounding.round_up(wanted.growth.range.size());
    return bytes;
}

void DomainImpl::note_growth(const Wanted& wanted, SpaceId space) noexcept {
    Shortage& shortage = this->space(space).shortage();
    if (!shortage.has_begun()) [[likely]]
        return;
    wanted.storage->note_use(space, wanted.growth.range, shortage.next_use());
    if (wanted.storage->note_returned(space))
        shortage.count_returned(wanted.growth.range.size());
}

Result<void> DomainImpl::add_memory(std::span<const Use> uses, SpaceId space, const LeaseTerms& terms,
                                    Linking linking) {
    POLDER_TRY(reserve_staging(space));
    if (uses.size() == 1 && !impl(*uses.front().storage).has_replica(space)) [[likely]] {
        StorageImpl& storage = impl(*uses.front().storage);
        const ByteRange range = uses.front().range;
        if (needs_first_block(storage, range, space)) [[likely]]
            return add_first_block(storage, space, terms);
        if (space.is_host() && !storage.stretch() && !is_small(storage, space) && range.size() < storage.size().value)
            return add_first_part(this->space(space), storage, pages_of(range, storage));
    }
    if (has_unified_ && linking == Linking::allowed && !is_host_memory(space) &&
        this->space(space).device()->unified_memory()) [[unlikely]]
        for (const Use& use : uses)
            link_if_possible(impl(*use.storage), space);
    WantedList blocks;
    WantedList parts;
    for (const Use& use : uses)
        want(use, space, blocks, parts);
    ChargedParts charged{this->space(space)};
    for (const Wanted& wanted : parts)
        POLDER_TRY(charged.charge(wanted));
    if (!blocks.empty())
        POLDER_TRY(add_blocks(blocks.view(), space, terms));
    charged.arrive();
    return {};
}

// Another thread may have added the memory before. The lock is needed only when the storage has some memory in the space, because only
// this thread adds memory.
void DomainImpl::want(const Use& use, SpaceId space, WantedList& blocks, WantedList& parts) const {
    StorageImpl& storage = impl(*use.storage);
    if (storage.has_all(storage.place_of(space)))
        return;
    const ByteRange all{0, storage.size().value};
    const bool is_stretched = space.is_host() && storage.stretch();
    if (is_small(storage, space) && !is_stretched) {
        if (blocks.empty() || blocks.back().storage != &storage)
            blocks.push_back({&storage, {all, 0}});
        return;
    }
    if (!space.is_host() || (!is_stretched && use.range.contains(all))) {
        want_block(storage, use.range, space, blocks);
        return;
    }
    if (storage.has_replica(space)) {
        const StorageGuard guard{storage};
        if (storage.find(space, use.range))
            return;
    }
    const ByteRange range = pages_of(use.range, storage);
    if (!parts.empty() && parts.back().storage == &storage && parts.back().growth.range.end >= range.begin) {
        ByteRange& before = parts.back().growth.range;
        before.end = std::max(before.end, range.end);
    } else {
        parts.push_back({&storage, {range, 0}});
    }
}

void DomainImpl::want_block(StorageImpl& storage, ByteRange range, SpaceId space, WantedList& blocks) const {
    const Alignment step = replica_alignment(space);
    const StorageGuard guard{storage};
    const auto growth_of = [&](ByteRange wanted) {
        return storage.replicas().growth(space, wanted, storage.size(), step);
    };
    std::optional<Growth> growth = growth_of(range);
    while (growth && !blocks.empty() && blocks.back().storage == &storage &&
           blocks.back().growth.range.overlaps(growth->range)) {
        const ByteRange before = blocks.back().growth.range;
        blocks.resize_down(blocks.size() - 1);
        growth = growth_of({std::min(before.begin, growth->range.begin), std::max(before.end, growth->range.end)});
    }
    if (growth)
        blocks.push_back({&storage, *growth});
}

Result<void> DomainImpl::add_blocks(std::span<const Wanted> wanted, SpaceId space, const LeaseTerms& terms) {
    SmallVector<LeaseRequest, 1> requests;
    const Alignment alignment = replica_alignment(space);
    for (const Wanted& one : wanted)
        requests.push_back({ByteCount{one.growth.range.size()}, alignment});
    Allocator& pool = this->space(space).pool();
    LeaseGroup leased{pool, wanted.size()};
    if (Result<void> result = pool.lease(requests.view(), terms, leased.all()); !result) {
        POLDER_LOG(memory, "storage %llu%s: no memory in space %u: %.*s", llu(wanted[0].storage->number()),
                   wanted.size() > 1 ? " and others" : "", space.value,
                   static_cast<int>(result.error().detail().size()), result.error().detail().data());
        return result;
    }
    leased.begin();
    for (const Wanted& one : wanted) {
        const StorageGuard guard{*one.storage};
        POLDER_TRY(attach(one, space, leased.first()));
        POLDER_LOG(memory, "storage %llu: %llu bytes allocated in space %u at 0x%llx", llu(one.storage->number()),
                   llu(one.growth.range.size()), space.value, llu(leased.first().block.address.value));
        leased.pop();
    }
    return {};
}

Result<void> DomainImpl::add_first_block(StorageImpl& storage, SpaceId space, const LeaseTerms& terms) {
    SpaceImpl& memory = this->space(space);
    const ByteRange all{0, storage.size().value};
    const LeaseRequest request{storage.size(), replica_alignment(space)};
    Allocator& pool = memory.pool();
    Lease lease;
    if (Result<void> result = pool.lease({&request, 1}, terms, {&lease, 1}); !result) [[unlikely]] {
        POLDER_LOG(memory, "storage %llu: no memory in space %u: %.*s", llu(storage.number()), space.value,
                   static_cast<int>(result.error().detail().size()), result.error().detail().data());
        return result;
    }
    bool is_added = false;
    const ScopeExit free{[&]() noexcept {
        if (!is_added) [[unlikely]]
            pool.free(lease.block, lease.after.view());
    }};
    const StorageGuard guard{storage};
    storage.make_room_for_replicas(1, space);
    storage.residency().begin_in(all, space, lease.after.view());
    if (space.is_host() && !memory.last_maps().empty()) [[unlikely]]
        POLDER_TRY(storage.inherit_maps(all, lease.block.address, nullptr));
    storage.add_replica({space, 0, all, lease.block.address, lease.block});
    note_growth({&storage, {all, 0}}, space);
    POLDER_LOG(memory, "storage %llu: %llu bytes allocated in space %u at 0x%llx", llu(storage.number()),
               llu(all.size()), space.value, llu(lease.block.address.value));
    is_added = true;
    return {};
}

Result<void> DomainImpl::attach(const Wanted& wanted, SpaceId space, Lease& lease) {
    StorageImpl& storage = *wanted.storage;
    const ByteRange range = wanted.growth.range;
    storage.make_room_for_replicas(1, space);
    SmallVector<Replica, 1> old;
    storage.replicas().visit(space, range, [&](const Replica& known) { old.push_back(known); });
    storage.residency().begin_in(range, space, lease.after.view());
    const DeviceAddress base{lease.block.address.value - range.begin};
    if (space.is_host() && !this->space(space).last_maps().empty()) [[unlikely]]
        POLDER_TRY(storage.inherit_maps(range, base, &lease.after));
    for (const Replica& from : old)
        POLDER_TRY(gather(storage, from, base, lease));
    for (const Replica& from : old)
        storage.remove_replica(from);
    storage.add_replica({space, wanted.growth.growths, range, base, lease.block});
    note_growth(wanted, space);
    return {};
}

// Copies the bytes that `from` holds to their place in the larger replica. The old block becomes free when everything that uses it is
// complete, including these copies.
Result<void> DomainImpl::gather(StorageImpl& storage, const Replica& from, DeviceAddress base, Lease& lease) {
    Residency& residency = storage.residency();
    SmallVector<ByteRange, 2> held;
    residency.visit(from.range, [&](ByteRange range, const RangeState& state) {
        if (!state.holders.contains(from.space))
            return;
        if (!held.empty() && held.back().end == range.begin)
            held.back().end = range.end;
        else
            held.push_back(range);
    });
    residency.prepare(held.view(), 1);
    for (const ByteRange& range : held) {
        WaitList before_read;
        WaitList before_write;
        residency.hidden_read_waits(range, from.space, before_read);
        before_write.add(lease.after.view());
        lease.after.reserve(lease.after.size() + 1);
        const StorageRect rect = StorageRect::of(range);
        const Move move{place_of(from.space, from.base, rect), place_of(from.space, base, rect), rect.shape};
        Moved moved;
        POLDER_TRY(mover_.hidden(move, before_read, before_write, nullptr, moved));
        lease.after.push_back(moved.written);
        residency.commit_moved(range, from.space, moved.written);
        ledger_.add_gathered(from.space, ByteCount{range.size()});
        if (trace::enabled()) [[unlikely]]
            trace_transfer(storage, rect, from.space, from.space, moved.written);
        POLDER_LOG(memory, "storage %llu: [%llu, %llu) gathered in space %u", llu(storage.number()), llu(range.begin),
                   llu(range.end), from.space.value);
    }
    residency.merge(held.view());
    return {};
}

Result<void> DomainImpl::reserve_staging_for(SpaceId space) {
    SpaceSet used{space};
    {
        const Lock lock{staging_mutex_};
        used.bits |= spaces_used_.load(std::memory_order_relaxed);
        if (mover_.staging().has_reserve() || !mover_.topology().stages(used)) {
            spaces_used_.store(used.bits, std::memory_order_relaxed);
            return {};
        }
    }
    if (Result<void> allocated = mover_.staging().allocate_reserve(); !allocated) {
        trace::record_refusal({.space = host_space}, allocated.error().detail());
        return allocated;
    }
    const Lock lock{staging_mutex_};
    spaces_used_.fetch_or(used.bits, std::memory_order_relaxed);
    return {};
}

}  // namespace polder::memory
