#include "domain_impl.h"
#include "storage_impl.h"

#include <base/log.h>
#include <memory/trace.h>

#include <cstring>
#include <new>

namespace polder::memory {
namespace {

std::atomic<uint64_t> last_number{0};

} // namespace

Result<Ref<Storage>> Storage::create(Domain& domain, ByteCount size, const StorageOptions& options) {
    auto storage = make_ref<StorageImpl>(static_cast<DomainImpl&>(domain), size);
    POLDER_LOG(memory, "storage %llu: created, %llu bytes", static_cast<unsigned long long>(storage->number()),
               static_cast<unsigned long long>(size.value));
    if (trace::enabled()) [[unlikely]]
        storage->record_event(trace::Kind::storage_create, {0, size.value});
    if (options.application_memory)
        storage->add_application_memory(options.application_memory);
    if (options.initial_contents) {
        POLDER_TRY(static_cast<DomainImpl&>(domain).reserve_for_host(*storage));
        std::memcpy(storage->base(host_space, {0, size.value}).host(), options.initial_contents, size.value);
        storage->write_initially(host_space);
    }
    return Ref<Storage>{std::move(storage)};
}

StorageImpl::StorageImpl(DomainImpl& domain, ByteCount size) : domain_(domain), residency_(size) {}

Domain& StorageImpl::domain() const { return domain_; }

uint64_t StorageImpl::number() const {
    uint64_t number = number_.load(std::memory_order_relaxed);
    if (number != 0)
        return number;
    const uint64_t fresh = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
    return number_.compare_exchange_strong(number, fresh, std::memory_order_relaxed) ? fresh : number;
}

void StorageImpl::begin_allocating(SpaceId space) noexcept {
    const uint64_t bit = SpaceSet{space}.bits;
    for (uint64_t before; (before = allocating_.fetch_or(bit, std::memory_order_acquire)) & bit;)
        allocating_.wait(before, std::memory_order_relaxed);
}

bool StorageImpl::try_begin_allocating(SpaceId space) noexcept {
    const uint64_t bit = SpaceSet{space}.bits;
    return (allocating_.fetch_or(bit, std::memory_order_acquire) & bit) == 0;
}

void StorageImpl::end_allocating(SpaceId space) noexcept {
    allocating_.fetch_and(~SpaceSet{space}.bits, std::memory_order_release);
    allocating_.notify_all();
}

namespace {

// Collects what is in flight with `collect`. When the host has no memory for the list, waits for all of it instead: a
// destructor cannot fail.
template <class Collect>
void collect_or_wait(const Residency& residency, WaitList& waits, Collect&& collect) noexcept {
    try {
        collect(waits);
    } catch (const std::bad_alloc&) {
        waits.reset(nullptr);
        residency.wait_for_all();
    }
}

} // namespace

void StorageImpl::add_application_memory(std::byte* memory) {
    const bool in_place = block_alignment.divides(DeviceAddress::of(memory).value);
    map_place_ = in_place ? host_space : application_space;
    add_replica({map_place_, 0, {0, size().value}, DeviceAddress::of(memory), std::nullopt});
    write_initially(map_place_);
}

void StorageImpl::add_replica(const Replica& replica) noexcept {
    replicas_.insert(replica);
    if (replica.space == map_place_)
        map_address_.store(replica.base.host(), std::memory_order_release);
    note_spaces();
    if (!resident_link_.is_listed && (replica.block || stretch_) && domain_.can_evict())
        Residents::add(*this);
    if (trace::enabled() && replica.block) [[unlikely]]
        record_event(trace::Kind::replica, replica.range, replica.space, replica.block->address);
}

void StorageImpl::remove_replica(const Replica& replica) noexcept {
    const Replica removed = replica;
    replicas_.erase(removed.space, removed.range.begin);
    note_spaces();
    give_back(removed);
}

void StorageImpl::remove_stretch() noexcept {
    const Replica* known = nullptr;
    while ((known = replicas_.any_of(host_space)))
        replicas_.erase(host_space, known->range.begin);
    note_spaces();
    give_back_stretch();
}

void StorageImpl::announce(const Announced& use) {
    if (!announced_)
        announced_ = std::make_unique<std::vector<Announced>>();
    announced_->push_back(use);
}

void StorageImpl::withdraw(uint64_t number) noexcept {
    if (announced_)
        std::erase_if(*announced_, [&](const Announced& use) { return use.number == number; });
}

uint64_t StorageImpl::next_use(SpaceId space, ByteRange range) const {
    uint64_t next = ~uint64_t{0};
    if (announced_)
        for (const Announced& use : *announced_)
            if (use.space == space && use.range.overlaps(range))
                next = std::min(next, use.number);
    return next;
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

void StorageImpl::run_when_idle(ByteRange range, CompletionCallback callback) {
    WaitList waits;
    {
        const StorageGuard guard{*this};
        residency_.all_waits(range, waits);
    }
    run_when_complete(waits.view(), callback);
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

StorageImpl::~StorageImpl() {
    if (trace::enabled()) [[unlikely]]
        record_event(trace::Kind::storage_destroy, {});
    if (resident_link_.is_listed)
        Residents::remove(*this);
    if (replicas_.empty() && !stretch_ && !destroyed_.function) [[likely]] {  // never used
        POLDER_LOG(memory, "storage %llu: destroyed", static_cast<unsigned long long>(number()));
        return;
    }
    give_back();
}

// Memory goes back as soon as the work in flight there is done; the application hears of it when all of it is.
void StorageImpl::give_back() noexcept {
    WaitList all;
    collect_or_wait(residency_, all, [this](WaitList& waits) { residency_.all_waits(waits); });
    for (const Replica& replica : replicas_)
        give_back(replica);
    if (stretch_)
        give_back_stretch();
    POLDER_LOG(memory, "storage %llu: destroyed%s", static_cast<unsigned long long>(number()),
               all.empty() ? "" : ", work in flight");
    if (destroyed_.function)
        run_when_complete(all.view(), destroyed_);
}

void StorageImpl::give_back(const Replica& replica) noexcept {
    if (!replica.block)
        return;
    WaitList here;
    collect_or_wait(residency_, here,
                    [&](WaitList& waits) { residency_.all_waits(replica.range, replica.space, waits); });
    domain_.space(replica.space).pool().free(*replica.block, here.view());
}

void StorageImpl::give_back_stretch() noexcept {
    WaitList here;
    collect_or_wait(residency_, here,
                    [&](WaitList& waits) { residency_.all_waits({0, size().value}, host_space, waits); });
    domain_.space(host_space).sparse().free(std::move(stretch_), here.view());
}

} // namespace polder::memory
