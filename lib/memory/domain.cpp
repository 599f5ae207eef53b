#include "domain_impl.h"

#include <base/log.h>

namespace polder::memory {
namespace {

// For printf.
unsigned long long llu(uint64_t number) { return number; }

} // namespace

std::unique_ptr<Domain> Domain::create(std::span<Space* const> spaces) { return std::make_unique<DomainImpl>(spaces); }

// --- reserving ---

Result<void> DomainImpl::reserve(Storage& storage, SpaceId space) {
    if (impl(storage).has_replica(space))
        return {};
    const Lock lock{mutex_};
    POLDER_TRY(replica(impl(storage), space));
    return {};
}

Result<void> DomainImpl::reserve_map(Storage& storage) { return reserve(storage, impl(storage).map_place()); }

Result<DeviceAddress> DomainImpl::replica(StorageImpl& storage, SpaceId space) {
    if (const DeviceAddress* known = storage.replica(space)) [[likely]]
        return *known;
    Result<Block> block = mover_.space(space)->pool().allocate(storage.size(), block_alignment);
    if (!block) {
        POLDER_LOG(memory, "storage %llu: no memory in space %u: %.*s", llu(storage.number()), space.value,
                   static_cast<int>(block.error().detail().size()), block.error().detail().data());
        return fail(std::move(block).error());
    }
    POLDER_LOG(memory, "storage %llu: %llu bytes allocated in space %u at 0x%llx", llu(storage.number()),
               llu(storage.size().value), space.value, llu(block->address.value));
    storage.add_block(space, *block);
    return block->address;
}

// --- transfers ---

Result<void> DomainImpl::transfer(const Plan& plan, std::span<StorageImpl* const> storages, SpaceId target) {
    for (const PlannedTransfer& planned : plan.transfers)
        POLDER_TRY(transfer(*storages[planned.use], StorageRect::of(planned.range), planned.from, target));
    return {};
}

Result<void> DomainImpl::transfer(StorageImpl& storage, const StorageRect& rect, SpaceId from, SpaceId to) {
    POLDER_ASSIGN(from_base, replica(storage, from));
    POLDER_ASSIGN(to_base, replica(storage, to));
    Residency& residency = storage.residency();
    const Rows rows = rows_of(rect);
    WaitList before_read;
    WaitList before_write;
    for (const ByteRange& row : rows) {
        residency.hidden_read_waits(row, from, before_read);
        residency.hidden_write_waits(row, to, before_write);
    }
    const Move move{place_of(from, from_base, rect), place_of(to, to_base, rect), rect.shape};
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
    mutex_.lock();
    Result<void> prepared = prepare(execution, uses);
    if (!prepared) {
        mutex_.unlock();
        return fail(std::move(prepared).error());
    }
    return Acquisition{*this};
}

Result<void> DomainImpl::prepare(const Execution& execution, std::span<const Use> uses) {
    launch_.space = execution.space;
    launch_.uses.clear();
    launch_.storages.clear();
    launch_.addresses.clear();
    for (const Use& use : uses) {
        StorageImpl& storage = impl(*use.storage);
        POLDER_ASSIGN(address, replica(storage, execution.space));
        launch_.uses.push_back({&storage.residency(), use.range, use.access});
        launch_.storages.push_back(&storage);
        launch_.addresses.push_back(address.plus(use.range.begin));
    }
    return prepare_in_place(execution) ? Result<void>{} : prepare_by_plan(execution);
}

bool DomainImpl::prepare_in_place(const Execution& execution) {
    launch_.plan.versions.clear();
    launch_.waits.reset(&execution.queue);
    launch_.waits.add(execution.waits);
    for (uint32_t i = 0; i < launch_.uses.size(); ++i) {
        const PlannedUse& use = launch_.uses[i];
        const std::optional<Version> newest =
            use.residency->use_in_place(use.range, execution.space, use.access, launch_.waits);
        if (!newest)
            return false;
        if (writes(use.access))
            launch_.plan.versions.push_back({i, newest->next()});
    }
    POLDER_LOG(memory, "kernel on space %u: %zu uses in place, %u new versions", execution.space.value,
               launch_.uses.size(), launch_.plan.versions.size());
    return true;
}

Result<void> DomainImpl::prepare_by_plan(const Execution& execution) {
    launch_.plan = plan(launch_.uses, execution.space, mover_.topology());
    POLDER_LOG(memory, "kernel on space %u: %zu uses, %u transfers, %u new versions", execution.space.value,
               launch_.uses.size(), launch_.plan.transfers.size(), launch_.plan.versions.size());
    POLDER_TRY(transfer(launch_.plan, launch_.storages, execution.space));
    launch_.waits.reset(&execution.queue);
    launch_.waits.add(execution.waits);
    for (const PlannedUse& use : launch_.uses)
        use.residency->user_waits(use.range, execution.space, use.access, launch_.waits);
    return {};
}

void DomainImpl::commit_launch(driver::Timepoint done) {
    const PlannedVersion* version = launch_.plan.versions.begin();
    for (size_t i = 0; i < launch_.uses.size(); ++i) {
        const PlannedUse& use = launch_.uses[i];
        Residency& residency = launch_.storages[i]->residency();
        if (writes(use.access))
            residency.commit_write({&use.range, 1}, launch_.space, (version++)->next, done);
        else if (reads(use.access))
            residency.commit_read({&use.range, 1}, launch_.space, TouchKind::user_read, done);
    }
}

POLDER_THREAD_ANNOTATION(no_thread_safety_analysis)
driver::Waits Acquisition::waits() const { return domain_->launch_.waits.view(); }

POLDER_THREAD_ANNOTATION(no_thread_safety_analysis)
DeviceAddress Acquisition::address(size_t index) const { return domain_->launch_.addresses[index]; }

POLDER_THREAD_ANNOTATION(no_thread_safety_analysis)
void Acquisition::commit(driver::Timepoint done) {
    domain_->commit_launch(done);
    release();
}

POLDER_THREAD_ANNOTATION(no_thread_safety_analysis)
void Acquisition::release() { std::exchange(domain_, nullptr)->mutex_.unlock(); }

} // namespace polder::memory
