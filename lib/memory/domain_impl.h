// The Domain's one implementation. Every function locks the storages of the command, plans, submits what has to move,
// submits the command, and commits.
//
// domain.cpp has reserving and transfers, domain_launch.cpp kernels, domain_copies.cpp the commands that copy,
// domain_maps.cpp maps and migration.
#pragma once

#include "ledger_impl.h"
#include "residency/planner.h"
#include "storage_impl.h"
#include "transfer/rect.h"
#include "transfer/transfer.h"

#include <base/mutex.h>
#include <memory/domain.h>

#include <atomic>

namespace polder::memory {

class Sequence;

class DomainImpl final : public Domain {
public:
    DomainImpl(std::span<Space* const> spaces, const DomainOptions& options);

    using Domain::reserve;
    using Domain::reserve_map;
    [[nodiscard]] Result<void> reserve(std::span<const Use> uses, SpaceId space, const driver::Queue* queue) override;
    [[nodiscard]] bool is_reserved(const Storage& storage, ByteRange range, SpaceId space) const override;
    // Host memory for all of a new storage that the calling thread is about to write.
    [[nodiscard]] Result<void> reserve_for_host(StorageImpl& storage);
    [[nodiscard]] Result<void> reserve_map(Storage& storage, ByteRange range) override;
    [[nodiscard]] Result<DeviceAddress> pin(Storage& storage, SpaceId space, Contents contents) override;

    [[nodiscard]] Result<driver::Timepoint> launch(const Execution& execution, std::span<const Use> uses,
                                                   SubmitLaunch submit) override;
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

private:
    struct LaunchPlan;

    static StorageImpl& impl(Storage& storage) { return static_cast<StorageImpl&>(storage); }

    // --- reserving; domain_reserve.cpp. May wait for work in flight, so never under a storage's lock ---
    // A replica to make.
    struct Wanted {
        StorageImpl* storage = nullptr;
        Growth growth;
    };
    using WantedList = SmallVector<Wanted, 1>;
    class ChargedParts;

    // False without a lock, so that it may just have become true.
    [[nodiscard]] static bool has_memory(const StorageImpl& storage, ByteRange range, SpaceId space);
    [[nodiscard]] Result<void> reserve_now(std::span<const Use> uses, SpaceId space, const LeaseTerms& terms);
    // For uses that are sorted by storage and range. Having the allocation guards of the storages.
    [[nodiscard]] Result<void> add_memory(std::span<const Use> uses, SpaceId space, const LeaseTerms& terms);
    void want(const Use& use, SpaceId space, WantedList& blocks, WantedList& parts) const;
    void want_block(StorageImpl& storage, ByteRange range, SpaceId space, WantedList& blocks) const;
    [[nodiscard]] Result<void> add_blocks(std::span<const Wanted> wanted, SpaceId space, const LeaseTerms& terms);
    // With the storage's lock. A failure leaves the storage as it was; what was submitted is added to lease.after.
    [[nodiscard]] Result<void> attach(const Wanted& wanted, SpaceId space, Lease& lease);
    [[nodiscard]] Result<void> gather(StorageImpl& storage, const Replica& from, DeviceAddress base, Lease& lease);
    [[nodiscard]] Result<void> reserve_staging(SpaceId space);

    // The memory of one command: provided without locks, then looked for under the locks of the storages, because it may have
    // been taken away in between.
    class Provision {
    public:
        Provision(DomainImpl& domain, std::span<const Use> uses, SpaceId space, const driver::Queue* queue)
            : domain_(domain), uses_(uses), space_(space), queue_(queue) {}
        [[nodiscard]] Result<void> provide() { return domain_.reserve(uses_, space_, queue_); }
        [[nodiscard]] bool is_there() const;

    private:
        DomainImpl& domain_;
        const std::span<const Use> uses_;
        const SpaceId space_;
        const driver::Queue* const queue_;
    };
    // Calls body() under the locks of `locked` when `uses` have memory in `space`.
    template <class Body>
    [[nodiscard]] Result<driver::Timepoint> with_memory(std::span<const Use> uses, SpaceId space,
                                                        const driver::Queue* queue, std::span<const Use> locked,
                                                        Body&& body) {
        Provision memory{*this, uses, space, queue};
        for (;;) {
            POLDER_TRY(memory.provide());
            const StorageGuard guard{locked};
            if (memory.is_there()) [[likely]]
                return body();
        }
    }

    // --- transfers; domain.cpp ---
    // A replica that bytes come from.
    struct Source {
        SpaceId space;
        DeviceAddress base;
    };
    // Copies `rect`, which `from` holds and `to` does not, and commits that. The storage is locked, and its rows are
    // prepared for two touches more. `slots` are for staging, or null. Writing waits for `after` as well.
    [[nodiscard]] Result<Moved> transfer(StorageImpl& storage, const StorageRect& rect, const Source& from, SpaceId to,
                                         StagingSlots* slots = nullptr, driver::Timepoint after = {});
    // Records a copy between two memories, which ends at `done`.
    static void trace_transfer(const StorageImpl& storage, const StorageRect& rect, SpaceId from, SpaceId to,
                               driver::Timepoint done);
    // Makes `target` a holder of what is stale of `rect` there. Likewise.
    [[nodiscard]] Result<void> make_resident(StorageImpl& storage, const StorageRect& rect, SpaceId target);
    // A staged transfer of more than one chunk.
    struct LongTransfer {
        StorageImpl* storage = nullptr;
        ByteRange range;
    };
    // Makes `target` a holder of a range, chunk by chunk: the storage is locked for one chunk at a time, so that other
    // threads can use it in between. For bytes that come to `target` by staging; others are left where they are.
    [[nodiscard]] Result<void> transfer_in_chunks(const LongTransfer& transfer, SpaceId target);
    [[nodiscard]] Result<void> transfer_chunk(StorageImpl& storage, ByteRange done, ByteRange chunk, SpaceId target,
                                              StagingSlots* slots, driver::Timepoint& last);
    [[nodiscard]] bool is_long(ByteRange range, SpaceId from, SpaceId to) const;
    // Whether bytes of `range` come to `target` by a long transfer.
    [[nodiscard]] bool has_long_transfer(StorageImpl& storage, ByteRange range, SpaceId target) const;
    // Adds to the ledger what a perfect plan would copy of `rows`. Commands that copy read either place of the host where it
    // is; a replica in one is made from the other.
    enum class HostPlaces : uint8_t { alike, apart };
    void count_needed(const Residency& residency, const Rows& rows, const SourceChoice& choice,
                      HostPlaces places) noexcept;

    // --- commands that copy; domain_copies.cpp ---
    struct CopyPart {
        StorageImpl& storage;  // that is read
        StorageRect rect;  // of it
        Move move;
    };
    // Copies one part on the command's queue or, where that cannot be, on a hidden one. Commits the reading, and sets
    // `done` to when the target is written.
    [[nodiscard]] Result<void> copy_part(Sequence& sequence, const Execution& execution, const CopyPart& part,
                                         driver::Timepoint& done);

    // Under the locks, with memory for what they write.
    [[nodiscard]] Result<driver::Timepoint> write_there(const Execution& execution, StorageImpl& storage,
                                                        const StorageRect& rect, const std::byte* from,
                                                        driver::RectLayout from_layout);
    [[nodiscard]] Result<driver::Timepoint> copy_there(Sequence& sequence, const Execution& execution,
                                                       StorageImpl& source, const StorageRect& from_rect,
                                                       StorageImpl& target, const StorageRect& to_rect);
    [[nodiscard]] static driver::Timepoint fill_there(const Execution& execution, StorageImpl& storage, ByteRange range,
                                                      std::span<const std::byte> pattern);

    // --- maps and migration; domain_maps.cpp ---
    [[nodiscard]] Result<driver::Timepoint> map_there(Sequence& sequence, StorageImpl& storage, const StorageRect& rect,
                                                      MapAccess access);
    [[nodiscard]] Result<driver::Timepoint> migrate_there(Sequence& sequence, std::span<const Use> ranges,
                                                          SpaceId target, Content content);

    // --- kernels; domain_launch.cpp ---
    [[nodiscard]] Result<void> prepare_by_plan(LaunchPlan& launch);

    const DomainOptions options_;
    Mover mover_;
    LedgerImpl ledger_;
    // Devices' memories that storages have been given, as SpaceSet::bits. Written under the mutex.
    std::atomic<uint64_t> spaces_used_{0};
    Mutex staging_mutex_;
};

}  // namespace polder::memory
