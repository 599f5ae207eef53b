#include "domain_impl.h"

#include <base/log.h>

namespace polder::memory {
namespace {

// For printf.
unsigned long long llu(uint64_t number) { return number; }

} // namespace

std::unique_ptr<Domain> Domain::create(std::span<Space* const> spaces) { return std::make_unique<DomainImpl>(spaces); }

// --- reserving ---

// Without the domain's lock while it looks for memory: a full pool waits for work in flight, and what other threads do
// must go on meanwhile.
Result<void> DomainImpl::reserve(Storage& storage, SpaceId space) {
    StorageImpl& owner = impl(storage);
    if (owner.has_replica(space)) [[likely]]
        return {};
    return reserve_now(owner, space);
}

[[gnu::noinline]] Result<void> DomainImpl::reserve_now(StorageImpl& storage, SpaceId space) {
    const StorageImpl::Turn turn{storage, space};
    if (storage.has_replica(space))  // somebody else had the turn before
        return {};
    POLDER_TRY(reserve_staging(space));
    POLDER_ASSIGN(block, allocate(storage, space));
    const Lock lock{mutex_};
    storage.add_block(space, block);
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

Result<void> DomainImpl::reserve_map(Storage& storage) { return reserve(storage, impl(storage).map_place()); }

Result<Block> DomainImpl::allocate(const StorageImpl& storage, SpaceId space) const {
    Result<Block> block = mover_.space(space)->pool().allocate(storage.size(), block_alignment);
    if (block)
        POLDER_LOG(memory, "storage %llu: %llu bytes allocated in space %u at 0x%llx", llu(storage.number()),
                   llu(storage.size().value), space.value, llu(block->address.value));
    else
        POLDER_LOG(memory, "storage %llu: no memory in space %u: %.*s", llu(storage.number()), space.value,
                   static_cast<int>(block.error().detail().size()), block.error().detail().data());
    return block;
}

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
        POLDER_TRY(reserve(*use.storage, execution.space));
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
