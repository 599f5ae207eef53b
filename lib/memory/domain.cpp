#include "domain_impl.h"

#include <base/log.h>

#include <algorithm>
#include <deque>

namespace polder::memory {
namespace {

// For printf.
unsigned long long llu(uint64_t number) { return number; }

// Leases on their way to their storages: those that do not arrive go back to the pool.
class LeaseGroup {
public:
    LeaseGroup(BlockPool& pool, size_t count) : pool_(pool), many_(count > 1 ? count : 0), count_(count) {}
    ~LeaseGroup() {
        for (; first_ < count_; ++first_)
            pool_.free(first().block, first().after.view());
    }
    LeaseGroup(const LeaseGroup&) = delete;
    LeaseGroup& operator=(const LeaseGroup&) = delete;

    [[nodiscard]] std::span<Lease> all() { return many_.empty() ? std::span{&one_, 1} : std::span{many_}; }
    [[nodiscard]] const Lease& first() { return all()[first_]; }
    void pop() { ++first_; }
    // There are none.
    void release() { first_ = count_; }

private:
    BlockPool& pool_;
    Lease one_;
    std::vector<Lease> many_;
    const size_t count_;
    size_t first_ = 0;
};

} // namespace

std::unique_ptr<Domain> Domain::create(std::span<Space* const> spaces) { return std::make_unique<DomainImpl>(spaces); }

// --- reserving ---

Result<void> DomainImpl::reserve(Storage& storage, SpaceId space, const driver::Queue* queue) {
    StorageImpl& owner = impl(storage);
    if (owner.has_replica(space)) [[likely]]
        return {};
    return reserve_now(owner, space, {LeaseTerms::Consumer::device, queue});
}

Result<void> DomainImpl::reserve(std::span<Storage* const> storages, SpaceId space, const driver::Queue* queue) {
    std::vector<StorageImpl*> missing;
    for (Storage* storage : storages)
        if (!impl(*storage).has_replica(space))
            missing.push_back(&impl(*storage));
    if (missing.empty())
        return {};
    // Turns are taken in one order, so that two commands never wait for each other.
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    return reserve_now(missing, space, {LeaseTerms::Consumer::device, queue});
}

bool DomainImpl::is_reserved(const Storage& storage, SpaceId space) const {
    return static_cast<const StorageImpl&>(storage).has_replica(space);
}

Result<void> DomainImpl::reserve_for_host(StorageImpl& storage) {
    return reserve_now(storage, host_space, {LeaseTerms::Consumer::host});
}

[[gnu::noinline]] Result<void> DomainImpl::reserve_now(StorageImpl& storage, SpaceId space, const LeaseTerms& terms) {
    const StorageImpl::Turn turn{storage, space};
    if (storage.has_replica(space))  // another thread had the turn before
        return {};
    StorageImpl* const one = &storage;
    return lease({&one, 1}, space, terms);
}

Result<void> DomainImpl::reserve_now(std::span<StorageImpl* const> storages, SpaceId space, const LeaseTerms& terms) {
    std::deque<StorageImpl::Turn> turns;
    std::vector<StorageImpl*> missing;
    for (StorageImpl* storage : storages) {
        turns.emplace_back(*storage, space);
        if (!storage->has_replica(space))
            missing.push_back(storage);
    }
    return missing.empty() ? Result<void>{} : lease(missing, space, terms);
}

// Without the domain's lock while it looks for memory: a full pool waits for work in flight, and what other threads do
// must go on meanwhile.
Result<void> DomainImpl::lease(std::span<StorageImpl* const> storages, SpaceId space, const LeaseTerms& terms) {
    POLDER_TRY(reserve_staging(space));
    SmallVector<LeaseRequest, 1> requests;
    for (const StorageImpl* storage : storages)
        requests.push_back({storage->size(), block_alignment});
    BlockPool& pool = mover_.space(space)->pool();
    LeaseGroup leased{pool, storages.size()};
    if (Result<void> result = pool.lease(requests.view(), terms, leased.all()); !result) {
        POLDER_LOG(memory, "storage %llu%s: no memory in space %u: %.*s", llu(storages[0]->number()),
                   storages.size() > 1 ? " and others" : "", space.value,
                   static_cast<int>(result.error().detail().size()), result.error().detail().data());
        leased.release();
        return result;
    }
    const Lock lock{mutex_};
    for (StorageImpl* storage : storages) {
        storage->add_block(space, leased.first());
        POLDER_LOG(memory, "storage %llu: %llu bytes allocated in space %u at 0x%llx", llu(storage->number()),
                   llu(storage->size().value), space.value, llu(leased.first().block.address.value));
        leased.pop();
    }
    return {};
}

// Before bytes may have to go from one device to another through host memory, there must be some for them.
Result<void> DomainImpl::reserve_staging(SpaceId space) {
    SpaceSet used{space};
    if (is_host_memory(space) || (spaces_used_.load(std::memory_order_relaxed) & used.bits) != 0)
        return {};
    {
        const Lock lock{mutex_};
        used.bits |= spaces_used_.load(std::memory_order_relaxed);
        if (mover_.staging().has_reserve() || !mover_.topology().stages(used)) {
            spaces_used_.store(used.bits, std::memory_order_relaxed);
            return {};
        }
    }
    POLDER_ASSIGN(block, mover_.staging().allocate_reserve());
    const Lock lock{mutex_};
    mover_.staging().give_reserve(block);
    spaces_used_.fetch_or(used.bits, std::memory_order_relaxed);
    return {};
}

Result<void> DomainImpl::reserve_map(Storage& storage) { return reserve(storage, impl(storage).map_place(), nullptr); }

// --- transfers ---

Result<void> DomainImpl::transfer(const Plan& plan, std::span<const LaunchUse> uses, SpaceId target) {
    for (const PlannedTransfer& planned : plan.transfers)
        POLDER_TRY(transfer(*uses[planned.use].storage, StorageRect::of(planned.range), planned.from, target));
    return {};
}

Result<void> DomainImpl::transfer(StorageImpl& storage, const StorageRect& rect, SpaceId from, SpaceId to) {
    Residency& residency = storage.residency();
    const Rows rows = rows_of(rect);
    WaitList before_read;
    WaitList before_write;
    for (const ByteRange& row : rows) {
        residency.hidden_read_waits(row, from, before_read);
        residency.hidden_write_waits(row, to, before_write);
    }
    const Move move{place_of(from, storage.address(from), rect), place_of(to, storage.address(to), rect), rect.shape};
    POLDER_ASSIGN(moved, mover_.hidden(move, before_read, before_write));
    residency.commit_transfer(rows.view(), {from, to, moved.read, moved.written});
    const ByteCount bytes{bytes_of(rect.shape)};
    ledger_.add(from, to, bytes, bytes);
    POLDER_LOG(memory, "storage %llu: transfer [%llu, %llu) from space %u to %u%s", llu(storage.number()),
               llu(rows[0].begin), llu(rows[rows.size() - 1].end), from.value, to.value,
               rows.size() > 1 ? ", some rows of it" : "");
    return {};
}

Result<void> DomainImpl::bring(StorageImpl& storage, const StorageRect& rect, SpaceId target) {
    const RectParts parts = split_by_source(storage.residency(), rect, {mover_.topology(), target, target});
    for (const RectPart& part : parts)
        if (part.source != target)
            POLDER_TRY(transfer(storage, part_of(rect, part), part.source, target));
    return {};
}

// --- kernels ---

POLDER_THREAD_ANNOTATION(no_thread_safety_analysis)  // the Acquisition takes the lock along
Result<Acquisition> DomainImpl::acquire(const Execution& execution, std::span<const Use> uses) {
    for (const Use& use : uses)
        POLDER_TRY(reserve(*use.storage, execution.space, &execution.queue));
    mutex_.lock();
    Result<void> prepared = prepare(execution, uses);
    if (!prepared) {
        mutex_.unlock();
        return fail(std::move(prepared).error());
    }
    return Acquisition{*this};
}

Result<void> DomainImpl::prepare(const Execution& execution, std::span<const Use> uses) {
    if (launch_.room.size() < uses.size()) [[unlikely]]
        launch_.room.resize(uses.size());
    launch_.uses = std::span{launch_.room}.first(uses.size());
    launch_.space = execution.space;
    launch_.waits.reset(&execution.queue);
    launch_.waits.add(execution.waits);
    bool in_place = true;
    for (size_t i = 0; i < uses.size(); ++i) {
        StorageImpl& storage = impl(*uses[i].storage);
        LaunchUse& use = launch_.uses[i];
        use = {&storage, uses[i].range, uses[i].access, {}, storage.address(execution.space).plus(uses[i].range.begin)};
        if (!in_place)
            continue;
        const auto newest = storage.residency().use_in_place(use.range, execution.space, use.access, launch_.waits);
        in_place = newest.has_value();
        use.next = newest.value_or(Version{}).next();
    }
    if (!in_place)
        return prepare_by_plan(execution);
    POLDER_LOG(memory, "kernel on space %u: %zu uses in place", execution.space.value, launch_.uses.size());
    return {};
}

Result<void> DomainImpl::prepare_by_plan(const Execution& execution) {
    launch_.planned.clear();
    for (const LaunchUse& use : launch_.uses)
        launch_.planned.push_back({&use.storage->residency(), use.range, use.access});
    const Plan made = plan(launch_.planned, execution.space, mover_.topology());
    POLDER_LOG(memory, "kernel on space %u: %zu uses, %u transfers, %u new versions", execution.space.value,
               launch_.uses.size(), made.transfers.size(), made.versions.size());
    for (const PlannedVersion& version : made.versions)
        launch_.uses[version.use].next = version.next;
    POLDER_TRY(transfer(made, launch_.uses, execution.space));
    launch_.waits.reset(&execution.queue);
    launch_.waits.add(execution.waits);
    for (const LaunchUse& use : launch_.uses)
        use.storage->residency().user_waits(use.range, execution.space, use.access, launch_.waits);
    return {};
}

void DomainImpl::commit_launch(driver::Timepoint done) {
    for (const LaunchUse& use : launch_.uses) {
        if (writes(use.access))
            use.storage->residency().commit_write({&use.range, 1}, launch_.space, use.next, done);
        else if (reads(use.access))
            use.storage->residency().commit_read({&use.range, 1}, launch_.space, TouchKind::user_read, done);
    }
}

POLDER_THREAD_ANNOTATION(no_thread_safety_analysis)
driver::Waits Acquisition::waits() const { return domain_->launch_.waits.view(); }

POLDER_THREAD_ANNOTATION(no_thread_safety_analysis)
DeviceAddress Acquisition::address(size_t index) const { return domain_->launch_.uses[index].address; }

POLDER_THREAD_ANNOTATION(no_thread_safety_analysis)
void Acquisition::commit(driver::Timepoint done) {
    domain_->commit_launch(done);
    release();
}

POLDER_THREAD_ANNOTATION(no_thread_safety_analysis)
void Acquisition::release() { std::exchange(domain_, nullptr)->mutex_.unlock(); }

} // namespace polder::memory
