#include "domain_impl.h"
#include "storage_impl.h"

#include <base/log.h>

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
    if (options.application_memory)
        storage->add_application_memory(options.application_memory);
    if (options.initial_contents) {
        POLDER_TRY(static_cast<DomainImpl&>(domain).reserve_for_host(*storage));
        std::memcpy(storage->address(host_space).host(), options.initial_contents, size.value);
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

StorageImpl::AllocationGuard::AllocationGuard(StorageImpl& storage, SpaceId space)
    : allocating_(storage.allocating_), bit_(SpaceSet{space}.bits) {
    for (uint64_t before; (before = allocating_.fetch_or(bit_, std::memory_order_acquire)) & bit_;)
        allocating_.wait(before, std::memory_order_relaxed);
}

StorageImpl::AllocationGuard::~AllocationGuard() {
    allocating_.fetch_and(~bit_, std::memory_order_release);
    allocating_.notify_all();
}

void StorageImpl::add_application_memory(std::byte* memory) {
    const bool in_place = block_alignment.divides(DeviceAddress::of(memory).value);
    map_place_ = in_place ? host_space : application_space;
    add_replica({map_place_, DeviceAddress::of(memory), std::nullopt});
    write_initially(map_place_);
}

void StorageImpl::add_block(SpaceId space, const Lease& lease) {
    replicas_.reserve(replicas_.size() + 1);
    residency_.begin_in(space, lease.after.view());
    add_replica({space, lease.block.address, lease.block});
}

void StorageImpl::add_replica(const Replica& replica) {
    replicas_.push_back(replica);
    if (replica.space == map_place_)
        map_address_.store(replica.address.host(), std::memory_order_release);
    replica_spaces_.fetch_or(SpaceSet{replica.space}.bits, std::memory_order_release);
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
    bool valid = residency_.validate();
    residency_.visit({0, size().value}, [&](ByteRange, const RangeState& state) {
        valid = valid && (state.holders.bits & ~replica_spaces_.load(std::memory_order_relaxed)) == 0;
    });
    return valid;
}

StorageImpl::~StorageImpl() {
    if (replicas_.empty() && !destroyed_.function) [[likely]] {  // never used
        POLDER_LOG(memory, "storage %llu: destroyed", static_cast<unsigned long long>(number()));
        return;
    }
    give_back();
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

// Memory goes back as soon as the work in flight there is done; the application hears of it when all of it is.
void StorageImpl::give_back() noexcept {
    WaitList all;
    collect_or_wait(residency_, all, [this](WaitList& waits) { residency_.all_waits(waits); });
    for (const Replica& replica : replicas_)
        give_back(replica);
    POLDER_LOG(memory, "storage %llu: destroyed%s", static_cast<unsigned long long>(number()),
               all.empty() ? "" : ", work in flight");
    if (destroyed_.function)
        run_when_complete(all.view(), destroyed_);
}

void StorageImpl::give_back(const Replica& replica) noexcept {
    if (!replica.block)
        return;
    WaitList here;
    collect_or_wait(residency_, here, [&](WaitList& waits) { residency_.all_waits(replica.space, waits); });
    domain_.space(replica.space).pool().free(*replica.block, here.view());
}

} // namespace polder::memory
