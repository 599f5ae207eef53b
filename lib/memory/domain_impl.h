// The Domain's one implementation. Every function plans, submits what has to move, submits the command, and commits,
// all under the one lock.
//
// domain.cpp has reserving and kernels, domain_copies.cpp the commands that copy, domain_maps.cpp maps and migration.
#pragma once

#include "ledger_impl.h"
#include "residency/planner.h"
#include "storage_impl.h"
#include "transfer/rect.h"
#include "transfer/transfer.h"

#include <base/mutex.h>
#include <memory/domain.h>

#include <atomic>
#include <vector>

namespace polder::memory {

class Sequence;

class DomainImpl final : public Domain {
public:
    explicit DomainImpl(std::span<Space* const> spaces) : mover_(spaces) {}

    [[nodiscard]] Result<void> reserve(Storage& storage, SpaceId space, const driver::Queue* queue) override;
    [[nodiscard]] Result<void> reserve(std::span<Storage* const> storages, SpaceId space,
                                       const driver::Queue* queue) override;
    [[nodiscard]] bool is_reserved(const Storage& storage, SpaceId space) const override;
    // Host memory that the calling thread is about to write.
    [[nodiscard]] Result<void> reserve_for_host(StorageImpl& storage) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] Result<void> reserve_map(Storage& storage) override;

    [[nodiscard]] Result<Acquisition> acquire(const Execution& execution, std::span<const Use> uses) override;
    [[nodiscard]] Result<driver::Timepoint> read(const Execution& execution, Storage& from, const StorageRect& rect,
                                                 std::byte* to, driver::RectLayout to_layout) override;
    [[nodiscard]] Result<driver::Timepoint> write(const Execution& execution, Storage& to, const StorageRect& rect,
                                                  const std::byte* from, driver::RectLayout from_layout) override;
    [[nodiscard]] Result<driver::Timepoint> copy(const Execution& execution, Storage& from,
                                                 const StorageRect& from_rect, Storage& to,
                                                 const StorageRect& to_rect) override;
    [[nodiscard]] Result<driver::Timepoint> fill(const Execution& execution, Storage& to, ByteRange range,
                                                 std::span<const std::byte> pattern) override;
    [[nodiscard]] Result<driver::Timepoint> migrate(const Execution& execution, std::span<const Use> ranges,
                                                    SpaceId target, Content content) override;
    [[nodiscard]] Result<driver::Timepoint> map(const Execution& execution, Storage& storage, const StorageRect& rect,
                                                MapAccess access) override;
    [[nodiscard]] Result<driver::Timepoint> unmap(const Execution& execution, Storage& storage, const StorageRect& rect,
                                                  MapAccess access) override;

    [[nodiscard]] Ledger& ledger() override { return ledger_; }
    [[nodiscard]] SpaceImpl& space(SpaceId id) const { return *mover_.space(id); }
    // Guards the residency of every storage.
    [[nodiscard]] Mutex& mutex() { return mutex_; }

private:
    friend class Acquisition;

    // What a kernel does to one byte range, and what becomes of it.
    struct LaunchUse {
        StorageImpl* storage = nullptr;
        ByteRange range;
        Access access = Access::none;
        Version next;  // of all its bytes, if it writes
        DeviceAddress address;
    };

    static StorageImpl& impl(Storage& storage) { return static_cast<StorageImpl&>(storage); }

    // --- shared by all commands; domain.cpp ---
    // May wait for work in flight, so never called under the lock.
    [[nodiscard]] Result<void> reserve_now(std::span<StorageImpl* const> storages, SpaceId space,
                                           const LeaseTerms& terms) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] Result<void> reserve_now(StorageImpl& storage, SpaceId space, const LeaseTerms& terms)
        POLDER_EXCLUDES(mutex_);
    [[nodiscard]] Result<void> reserve_staging(SpaceId space) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] Result<void> lease(std::span<StorageImpl* const> storages, SpaceId space, const LeaseTerms& terms)
        POLDER_EXCLUDES(mutex_);
    // Brings what `plan` asks for to `target`, and commits it.
    [[nodiscard]] Result<void> transfer(const Plan& plan, std::span<const LaunchUse> uses, SpaceId target)
        POLDER_REQUIRES(mutex_);
    // Copies `rect`, which `from` holds and `to` does not.
    [[nodiscard]] Result<void> transfer(StorageImpl& storage, const StorageRect& rect, SpaceId from, SpaceId to)
        POLDER_REQUIRES(mutex_);
    // Brings what is stale of `rect` to `target`.
    [[nodiscard]] Result<void> bring(StorageImpl& storage, const StorageRect& rect, SpaceId target)
        POLDER_REQUIRES(mutex_);

    // --- commands that copy; domain_copies.cpp ---
    struct CopyPart {
        StorageImpl& storage;  // that is read
        StorageRect rect;      // of it
        Move move;
    };
    // Copies one part on the command's queue or, where that cannot be, on a hidden one.
    [[nodiscard]] Result<void> copy_part(Sequence& sequence, const Execution& execution, const CopyPart& part)
        POLDER_REQUIRES(mutex_);

    // --- kernels ---
    // Plans in one pass over the uses as long as nothing has to move, which is the common case.
    [[nodiscard]] Result<void> prepare(const Execution& execution, std::span<const Use> uses) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Result<void> prepare_by_plan(const Execution& execution) POLDER_REQUIRES(mutex_);
    void commit_launch(driver::Timepoint done) POLDER_REQUIRES(mutex_);

    Mover mover_;
    // Devices' memories that storages have been given, as SpaceSet::bits. Written under the lock.
    std::atomic<uint64_t> spaces_used_{0};
    LedgerImpl ledger_;
    Mutex mutex_;

    // The launch being planned: valid while an Acquisition holds the lock, kept to save allocations.
    struct Launch {
        SpaceId space;
        WaitList waits;
        std::span<LaunchUse> uses;  // the first of `room`
        std::vector<LaunchUse> room;
        std::vector<PlannedUse> planned;
    };
    Launch launch_ POLDER_GUARDED_BY(mutex_);
};

} // namespace polder::memory
