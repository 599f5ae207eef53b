// Kernels and native kernels.
//
// In the common case all bytes are where the device computes: one pass over the uses plans and prepares the launch. Otherwise
// planner.cpp plans it, and the transfers are submitted first. In both cases everything that may fail happens before `submit` is
// called, and the commit after it cannot fail.
#include "domain_impl.h"
#include "failed_command.h"

#include <base/log.h>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace polder::memory {

struct DomainImpl::LaunchPlan {
    const Execution& execution;
    std::span<const Use> uses;
    std::span<DeviceAddress> addresses;
    std::span<Version> next;  // for each use that writes, the version that its bytes get
    WaitList waits{&execution.queue};
    std::optional<LongTransfer> long_transfer;
    bool is_split = false;  // the residency of some storage has several pieces, which may have to be merged

    void wait_for_events() {
        waits.reset(&execution.queue);
        waits.require(execution.waits);
    }
    enum class Bytes : uint8_t { in_place, stale, without_memory };
    [[nodiscard]] Bytes prepare_in_place();
    void commit(driver::Timepoint done) noexcept;
    [[nodiscard]] driver::Timepoint submit_by(SubmitLaunch submit) {
        const driver::Timepoint done = submit(waits.view(), addresses);
        commit(done);
        return done;
    }
};

DomainImpl::LaunchPlan::Bytes DomainImpl::LaunchPlan::prepare_in_place() {
    const SpaceId space = execution.space;
    // Two uses may share bytes, of which one reads and the other one writes.
    const uint32_t touches = uses.size() > 1 ? 2 : 1;
    wait_for_events();
    bool in_place = true;
    for (size_t i = 0; i < uses.size(); ++i) {
        const Use& use = uses[i];
        StorageImpl& storage = impl(*use.storage);
        Residency& residency = storage.residency();
        const SpaceId place = storage.place_of(space);
        const auto address = storage.find(place, use.range);
        if (!address) [[unlikely]]
            return Bytes::without_memory;
        addresses[i] = *address;
        const auto newest = residency.prepare_in_place(use.range, place, use.access, touches, waits);
        in_place = in_place && newest.has_value();
        next[i] = newest.value_or(Version{}).next();
        is_split = is_split || residency.is_split();
    }
    return in_place ? Bytes::in_place : Bytes::stale;
}

void DomainImpl::LaunchPlan::commit(driver::Timepoint done) noexcept {
    const SpaceId space = execution.space;
    for (size_t i = 0; i < uses.size(); ++i) {
        StorageImpl& storage = impl(*uses[i].storage);
        const SpaceId place = storage.place_of(space);
        const std::span<const ByteRange> range{&uses[i].range, 1};
        if (writes(uses[i].access))
            storage.residency().commit_write(range, place, next[i], done,
                                             reads(uses[i].access) ? Earlier::needed : Earlier::superseded);
        else if (reads(uses[i].access))
            storage.residency().commit_read(range, place, TouchKind::user_read, done);
    }
    if (!is_split) [[likely]]
        return;
    for (const Use& use : uses)
        impl(*use.storage).residency().merge({&use.range, 1});
}

namespace {

// An array with one uninitialized value for each use. For few uses it is on the stack.
template <class T>
    requires std::is_trivially_copyable_v<T>
class PerUse {
public:
    explicit PerUse(size_t count) : values_(reinterpret_cast<T*>(few_), count) {
        if (count > few) [[unlikely]] {
            many_ = std::make_unique<T[]>(count);
            values_ = {many_.get(), count};
        }
    }
    [[nodiscard]] std::span<T> values() { return values_; }

private:
    static constexpr size_t few = 8;
    alignas(T) std::byte few_[few * sizeof(T)];
    std::unique_ptr<T[]> many_;
    std::span<T> values_;
};

}  // namespace

Result<driver::Timepoint> DomainImpl::launch(const Execution& execution, std::span<const Use> uses,
                                             SubmitLaunch submit) {
    using Bytes = LaunchPlan::Bytes;
    PerUse<DeviceAddress> addresses{uses.size()};
    PerUse<Version> next{uses.size()};
    LaunchPlan launch{execution, uses, addresses.values(), next.values()};
    Provision memory{*this, uses, execution.space, &execution.queue};
    for (;;) {
        POLDER_TRY(memory.provide());
        {
            const StorageGuard guard{uses};
            const Bytes bytes = launch.prepare_in_place();
            if (bytes == Bytes::without_memory) [[unlikely]] {
                memory.note_lost();
                continue;
            }
            if (this->space(execution.space).shortage().has_begun()) [[unlikely]]
                note_uses(uses, execution.space);
            if (has_unified_ && bytes == Bytes::in_place) [[unlikely]] {
                POLDER_TRY(own(uses, execution.space));
                static_cast<void>(launch.prepare_in_place());  // again: there may be more to wait for
            }
            if (bytes == Bytes::in_place) [[likely]] {
                POLDER_LOG(memory, "kernel on space %u: %zu uses in place", execution.space.value, uses.size());
                return launch.submit_by(submit);
            }
            FailedCommand failed{uses};
            POLDER_TRY(prepare_by_plan(launch));
            if (!launch.long_transfer) {
                const driver::Timepoint done = launch.submit_by(submit);
                failed.has_succeeded();
                return done;
            }
        }
        // A long transfer locks the storages for one chunk at a time. Afterwards the launch is planned again.
        const LongTransfer transfer = *std::exchange(launch.long_transfer, std::nullopt);
        POLDER_TRY(transfer_in_chunks(transfer, execution.space));
    }
}

// Called after prepare_in_place. Prepares every use for two touches of the launch and two of a transfer. Bytes that the device uses in host memory are transferred there.
Result<void> DomainImpl::prepare_by_plan(LaunchPlan& launch) {
    const SpaceId target = launch.execution.space;
    SmallVector<PlannedUse, 8> planned;
    launch.is_split = true;  // preparing ranges may split pieces
    for (size_t i = 0; i < launch.uses.size(); ++i) {
        const Use& use = launch.uses[i];
        StorageImpl& storage = impl(*use.storage);
        storage.residency().prepare_part({&use.range, 1}, 4);
        const bool is_elsewhere = storage.place_of(target) != target;
        if (is_elsewhere && reads(use.access))
            POLDER_TRY(make_resident(storage, StorageRect::of(use.range), host_space));
        if (is_elsewhere)
            launch.next[i] = next_version(storage.residency(), use.range);
        planned.push_back({&storage.residency(), use.range, is_elsewhere ? Access::none : use.access});
    }
    const Plan made = plan(planned.view(), target, mover_.topology());
    for (const PlannedTransfer& transfer : made.transfers) {
        if (!is_long(transfer.range, transfer.from, target))
            continue;
        launch.long_transfer = {&impl(*launch.uses[transfer.use].storage), transfer.range};
        return {};
    }
    POLDER_LOG(memory, "kernel on space %u: %zu uses, %u transfers, %u new versions", target.value, launch.uses.size(),
               made.transfers.size(), made.versions.size());
    for (const NeededBytes& needed : needed_bytes(planned.view(), target, mover_.topology()))
        ledger_.add_needed(needed.from, target, ByteCount{needed.bytes});
    for (const PlannedVersion& version : made.versions)
        launch.next[version.use] = version.next;
    SmallVector<TransferPart, 4> parts;
    for (const PlannedTransfer& transfer : made.transfers) {
        StorageImpl& storage = impl(*launch.uses[transfer.use].storage);
        storage.replicas().visit(transfer.from, transfer.range, [&](const Replica& known) {
            parts.push_back({&storage, known.range.intersect(transfer.range), {known.space, known.base}});
        });
    }
    POLDER_TRY(transfer_all(parts.view(), target));
    POLDER_TRY(own(launch.uses, target));
    launch.wait_for_events();
    for (const Use& use : launch.uses) {
        StorageImpl& storage = impl(*use.storage);
        storage.residency().user_waits(use.range, storage.place_of(target), use.access, launch.waits);
    }
    return {};
}

}  // namespace polder::memory
