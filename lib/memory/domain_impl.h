// The implementation of Domain. Each command's function locks the storages of the command, plans, submits the transfers,
// submits the command's operation, and commits.
//
// Sources: domain.cpp creation and transfers; domain_reserve.cpp reserving memory; domain_growth.cpp adding memory to storages;
// domain_in_place.cpp short ways of common commands; storage_link.cpp memory that the host and a device share; domain_compact.cpp and domain_evict.cpp compaction and eviction; domain_launch.cpp kernels; domain_copies.cpp reads, writes, copies and fills; domain_maps.cpp maps
// and migration.
#pragma once

#include "ledger_impl.h"
#include "residency/planner.h"
#include "room_request.h"
#include "space/count_by_thread.h"
#include "storage_impl.h"
#include "transfer/rect.h"
#include "transfer/transfer.h"

#include <base/mutex.h>
#include <memory/domain.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>

namespace polder::memory {

class Sequence;

// What a command in place has submitted.
struct InPlace {
    driver::Timepoint done;
    Version version;  // of what was written
};

class DomainImpl final : public Domain {
public:
    DomainImpl(std::span<Space* const> spaces, const DomainOptions& options);

    using Domain::reserve;
    using Domain::reserve_map;
    [[nodiscard]] Result<void> reserve(std::span<const Use> uses, SpaceId space, const driver::Queue* queue) override;
    [[nodiscard]] bool is_reserved(const Storage& storage, ByteRange range, SpaceId space) const override;
    // Reserves host memory for all of a new storage that the calling thread is about to write.
    [[nodiscard]] Result<void> reserve_for_host(StorageImpl& storage);
    // Gives a new storage host memory with `contents`. No eviction removes that memory or writes it back before the contents are there.
    [[nodiscard]] Result<void> write_initially(StorageImpl& storage, const std::byte* contents);
    [[nodiscard]] Result<MapPin> reserve_map(Storage& storage, ByteRange range) override;
    [[nodiscard]] Result<void> reserve_migration(std::span<const Use> ranges, SpaceId target,
                                                 const driver::Queue* queue) override;
    [[nodiscard]] uint64_t announce(std::span<const Use> uses, SpaceId space) override;
    void withdraw(std::span<const Use> uses, uint64_t number) noexcept override;
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
    [[nodiscard]] Result<driver::Timepoint> fill_rect(const Execution& execution, Storage& to, const StorageRect& rect,
                                                      std::span<const std::byte> pattern) override;
    [[nodiscard]] Result<driver::Timepoint> migrate(const Execution& execution, std::span<const Use> ranges,
                                                    SpaceId target, Content content) override;
    [[nodiscard]] Result<driver::Timepoint> map(const Execution& execution, Storage& storage, const StorageRect& rect,
                                                MapAccess access) override;
    [[nodiscard]] Result<driver::Timepoint> unmap(const Execution& execution, Storage& storage, const StorageRect& rect,
                                                  MapAccess access) override;

    [[nodiscard]] Ledger& ledger() override { return ledger_; }
    [[nodiscard]] SpaceImpl& space(SpaceId id) const { return *mover_.space(id); }
    // A copy of the table of spaces, for storages that outlive the domain.
    [[nodiscard]] const std::shared_ptr<const SpaceTable>& space_table() const { return space_table_; }
    [[nodiscard]] ByteCount promised() const override;
    // Adds the size of a storage to `promised`, or subtracts it (negative).
    void promise(int64_t bytes) noexcept { promised_.add(bytes); }
    // Why a copy is made that trace_transfer records: a transfer of Polder, or a command that reads or writes the storage.
    enum class Transferring : uint8_t {
        hidden = 0,
        reading = polder::trace::commanded | polder::trace::reads,
        writing = polder::trace::commanded | polder::trace::writes,
    };
    static void trace_transfer(const StorageImpl& storage, const StorageRect& rect, SpaceId from, SpaceId to,
                               driver::Timepoint done, Transferring why = Transferring::hidden);
    // Whether commands of this context have lately waited for room in a memory that is full.
    [[nodiscard]] bool asks_for(SpaceId space) const;
    // True when there is more than one memory, so that bytes can be written back to another one.
    [[nodiscard]] bool can_evict() const { return can_evict_; }

private:
    struct LaunchPlan;

    static StorageImpl& impl(Storage& storage) { return static_cast<StorageImpl&>(storage); }
    // For a command on bytes that its device uses in host memory: the same queue executes it, in host memory.
    static Execution in_host_memory(const Execution& execution) {
        return {execution.queue, host_space, execution.waits, execution.times};
    }

    // --- reserving (domain_reserve.cpp) and adding memory (domain_growth.cpp). May wait for work in flight, so never called
    // under a storage's lock ---
    // A replica to add to a storage.
    struct Wanted {
        StorageImpl* storage = nullptr;
        Growth growth;
    };
    using WantedList = SmallVector<Wanted, 1>;
    class ChargedParts;

    // Checks without a lock, so a result of false may be out of date.
    [[nodiscard]] static bool has_memory(const StorageImpl& storage, ByteRange range, SpaceId space);
    enum class Turn : uint8_t { none, held };
    using Clock = RoomRequest::Clock;
    [[nodiscard]] Result<void> reserve_now(std::span<const Use> uses, SpaceId space, const LeaseTerms& terms,
                                           Turn turn = Turn::none);
    // These expect uses that are sorted by storage and range.
    [[nodiscard]] Result<void> reserve_in_turn(std::span<const Use> uses, SpaceId space, const LeaseTerms& terms,
                                               Tried tried);
    // Adds the memory if there is room now, or when earlier requests have been served.
    [[nodiscard]] Result<void> add_at_once(std::span<const Use> uses, SpaceId space, const LeaseTerms& terms);
    [[nodiscard]] Result<void> add_one_at_once(const Use& use, SpaceId space, const LeaseTerms& terms);
    // `uses` are sorted by storage and range, and the caller has the allocation guards of the storages.
    // Linking::never: for bytes that are evicted from the host, which need memory of the device's own.
    enum class Linking : uint8_t { allowed, never };
    [[nodiscard]] Result<void> add_memory(std::span<const Use> uses, SpaceId space, const LeaseTerms& terms,
                                          Linking linking = Linking::allowed);
    void want(const Use& use, SpaceId space, WantedList& blocks, WantedList& parts) const;
    // The common case of add_memory, done in one pass: a storage without memory in the space gets one block for all of its bytes.
    [[nodiscard]] bool needs_first_block(const StorageImpl& storage, ByteRange range, SpaceId space) const {
        return !has_unified_ && !storage.stretch() &&
               (is_small(storage, space) || range.size() == storage.size().value);
    }
    [[nodiscard]] Result<void> add_first_block(StorageImpl& storage, SpaceId space, const LeaseTerms& terms);
    // True for storages that get one block for all of their bytes.
    [[nodiscard]] bool is_small(const StorageImpl& storage, SpaceId space) const {
        return storage.size() <= (space.is_host() ? options_.whole_on_host_up_to : options_.whole_up_to);
    }
    [[nodiscard]] Alignment replica_alignment(SpaceId space) const;
    void want_block(StorageImpl& storage, ByteRange range, SpaceId space, WantedList& blocks) const;
    [[nodiscard]] Result<void> add_blocks(std::span<const Wanted> wanted, SpaceId space, const LeaseTerms& terms);
    // Called with the storage's lock. A failure leaves the storage as it was, and adds the operations that were submitted to lease.after.
    [[nodiscard]] Result<void> attach(const Wanted& wanted, SpaceId space, Lease& lease);
    [[nodiscard]] Result<void> gather(StorageImpl& storage, const Replica& from, DeviceAddress base, Lease& lease);
    // Reserves host memory for staging, when transfers between two devices through host memory become possible.
    [[nodiscard]] Result<void> reserve_staging(SpaceId space) {
        if (is_host_memory(space) || (spaces_used_.load(std::memory_order_relaxed) & SpaceSet{space}.bits) != 0)
            [[likely]]
            return {};
        return reserve_staging_for(space);
    }
    [[nodiscard]] Result<void> reserve_staging_for(SpaceId space);

    // Adds memory and, where there is no room, evicts other storages. The caller has the turn of `space`. `began`: when the request began.
    [[nodiscard]] Result<void> add_memory_evicting(std::span<const Use> uses, SpaceId space, const LeaseTerms& terms,
                                                   Clock::time_point began);
    // Waits until other threads have ended what kept the request from finding room. False when waiting cannot help.
    [[nodiscard]] bool wait_for_others(RoomRequest& room, std::span<const Use> uses);
    // The sum of the sizes of the replicas that `uses` miss, each rounded up.
    [[nodiscard]] uint64_t missing_bytes(std::span<const Use> uses, SpaceId space, Alignment rounding = {}) const;
    void note_growth(const Wanted& wanted, SpaceId space) noexcept;
    void note_uses(std::span<const Use> uses, SpaceId space) noexcept;
    // Waits for the turn of `space`; the turn counts for this context's share (FairTurns).
    void enter_turn(std::span<const Use> uses, SpaceId space, Tried tried = Tried::yes);
    // Counts the threads that are changing which storages have memory in `space`; null when nothing is ever evicted.
    [[nodiscard]] CountByThread* changes_in(SpaceId space) const {
        return can_evict_ ? &this->space(space).changes() : nullptr;
    }

    // Makes sure that one command has its memory when it is submitted. The runtime reserved the memory when the command was enqueued. The
    // domain checks under the locks of the storages whether it is there. When some is missing (evicted since, or never reserved),
    // the domain reserves it without locks, then checks again. From the second loss on, the command has the turn of the memory
    // space until it is submitted, so that no other command evicts there.
    class Provision {
    public:
        Provision(DomainImpl& domain, std::span<const Use> uses, SpaceId space, const driver::Queue* queue)
            : domain_(domain), uses_(uses), space_(space), queue_(queue) {}
        ~Provision() {
            if (has_turn_) [[unlikely]]
                domain_.space(space_).turns().leave();
        }
        Provision(const Provision&) = delete;
        Provision& operator=(const Provision&) = delete;
        [[nodiscard]] Result<void> provide() {
            if (losses_ == 0) [[likely]]
                return {};
            return reserve_again();
        }
        // Whether all memory of the command exists. Called under the locks of the storages.
        [[nodiscard]] bool is_there();
        // Called when is_there() has returned false.
        void note_lost() { ++losses_; }

    private:
        [[nodiscard]] Result<void> reserve_again();

        DomainImpl& domain_;
        const std::span<const Use> uses_;
        const SpaceId space_;
        const driver::Queue* const queue_;
        uint32_t losses_ = 0;
        bool has_turn_ = false;
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
            memory.note_lost();
        }
    }

    // --- eviction; domain_evict.cpp ---
    enum class WriteBack : uint8_t { never, allowed };
    struct EvictionRequest {
        SpaceId space;
        uint64_t bytes = 0;  // at least, if possible
        std::span<const Use> keep;  // what the asking command uses
        std::span<const Use> guarded;  // the caller has the allocation guards of these storages
        WriteBack write_back = WriteBack::allowed;
    };
    struct Victim {
        StorageImpl& storage;
        SpaceId space;
        ByteRange range;  // of the replica, or of the storage
        bool is_guarded = false;  // by the caller
    };
    // Returns how many bytes became free.
    uint64_t evict(const EvictionRequest& request, RoomRequest& room);
    uint64_t evict_planned(const EvictionRequest& request, RoomRequest& room);
    uint64_t search_and_evict(const EvictionRequest& request, uint64_t bytes, RoomRequest& room);
    static uint64_t evict_candidate(StorageImpl& storage, ByteRange range, const EvictionRequest& request,
                                    RoomRequest& room);
    // Evicts a replica of a storage of this domain. Returns how many bytes became free.
    uint64_t evict_replica(const Victim& victim, WriteBack write_back, RoomRequest& room);
    [[nodiscard]] bool write_back_range(StorageImpl& storage, ByteRange range, SpaceId from, SpaceId to);
    static std::optional<uint64_t> drop_replicas(const Victim& victim, RoomRequest& room);
    // Reserves memory for `range` in a space other than `from`, and returns the space; std::nullopt when no space has room.
    [[nodiscard]] std::optional<SpaceId> place_for(StorageImpl& storage, ByteRange range, SpaceId from,
                                                   RoomRequest& room);
    [[nodiscard]] bool provide_at_once(StorageImpl& storage, ByteRange range, SpaceId space, RoomRequest& room);

    // --- memory that the host and a device share; storage_link.cpp ---
    void link_if_possible(StorageImpl& storage, SpaceId space);
    // Makes `space` the owner of `range` in a shared block, before a command or transfer uses it there. Called with the storage's lock.
    [[nodiscard]] Result<void> own(StorageImpl& storage, ByteRange range, SpaceId space);
    [[nodiscard]] Result<void> own(std::span<const Use> uses, SpaceId space) {
        for (const Use& use : uses)
            POLDER_TRY(own(impl(*use.storage), use.range, space));
        return {};
    }

    // --- compaction; domain_compact.cpp ---
    // Moves replicas so that the memory that `uses` miss fits in one piece. False when that is not possible. Called with the turn of `space`.
    bool compact(std::span<const Use> uses, SpaceId space, RoomRequest& room);
    // Moves a replica of a storage of this domain from `block` to `lease`.
    [[nodiscard]] bool move_replica(const Victim& victim, const Block& block, Lease& lease);

    // --- transfers; domain.cpp ---
    // The replica that a transfer reads.
    struct Source {
        SpaceId space;
        DeviceAddress base;
    };
    // Copies `rect`, which `from` holds and `to` does not, and commits the transfer. The storage is locked, and its rows are
    // prepared for two more touches. `slots` are staging blocks, or null. The write also waits for `after`.
    [[nodiscard]] Result<Moved> transfer(StorageImpl& storage, const StorageRect& rect, const Source& from, SpaceId to,
                                         StagingSlots* slots = nullptr, driver::Timepoint after = {});
    struct TransferPart {
        StorageImpl* storage;
        ByteRange range;
        Source from;
    };
    // The same for several parts that share no bytes. The parts that one peer holds are copied as one operation.
    [[nodiscard]] Result<void> transfer_all(std::span<const TransferPart> parts, SpaceId to);
    [[nodiscard]] Result<void> transfer_from_peer(std::span<const TransferPart> parts, SpaceId to);
    // Transfers the bytes of `rect` that are stale in `target`. The same conditions hold.
    [[nodiscard]] Result<void> make_resident(StorageImpl& storage, const StorageRect& rect, SpaceId target);
    // A staged transfer of more than one chunk.
    struct LongTransfer {
        StorageImpl* storage = nullptr;
        ByteRange range;
    };
    // Transfers a range to `target` chunk by chunk. The storage is locked for one chunk at a time, so that other
    // threads can use it in between. Moves only bytes that need staging.
    [[nodiscard]] Result<void> transfer_in_chunks(const LongTransfer& transfer, SpaceId target);
    [[nodiscard]] Result<void> transfer_chunk(StorageImpl& storage, ByteRange done, ByteRange chunk, SpaceId target,
                                              StagingSlots* slots, driver::Timepoint& last);
    [[nodiscard]] bool is_long(ByteRange range, SpaceId from, SpaceId to) const;
    // Whether some bytes of `range` need a long transfer to `target`.
    [[nodiscard]] bool has_long_transfer(StorageImpl& storage, ByteRange range, SpaceId target) const;
    // Adds to the ledger the bytes of `rect` that a perfect plan would copy. `alike`: for commands that copy, which can read both host
    // memory and application memory in place. `apart`: for replicas, whose bytes must be copied between these two.
    enum class HostPlaces : uint8_t { alike, apart };
    void count_needed(const Residency& residency, const StorageRect& rect, const SourceChoice& choice,
                      HostPlaces places);

    // --- commands that copy; domain_copies.cpp ---
    struct CopyPart {
        StorageImpl& storage;  // the storage that is read
        StorageRect rect;  // the part of it
        Move move;
        StagingSlots* slots = nullptr;  // staging blocks; null: the copy takes its own when it needs some
    };
    // Copies one part on the command's queue or, where that queue cannot, on a hidden queue. Commits the reading.
    [[nodiscard]] Result<void> copy_part(Sequence& sequence, const Execution& execution, const CopyPart& part,
                                         Moved& moved);

    // --- the common cases, called under the locks: one row, whose bytes are where the command's device computes. They prepare it in one
    // pass and submit one operation to the command's queue. In other cases they submit nothing and return std::nullopt ---
    [[nodiscard]] bool has_short_way(const StorageRect& rect) const {
        return rect.shape.rows == 1 && rect.shape.slices == 1 && !has_unified_ && !trace::enabled();
    }
    [[nodiscard]] static std::optional<driver::Timepoint>
    read_in_place(const Execution& execution, StorageImpl& storage, ByteRange range, std::byte* to);
    // Always submits; the caller has made sure that the storage has memory for `range`.
    [[nodiscard]] driver::Timepoint write_in_place(const Execution& execution, StorageImpl& storage, ByteRange range,
                                                   const std::byte* from);
    [[nodiscard]] static driver::Timepoint fill_in_place(const Execution& execution, StorageImpl& storage,
                                                         ByteRange range, std::span<const std::byte> pattern);
    [[nodiscard]] static std::optional<driver::Timepoint>
    copy_in_place(const Execution& execution, StorageImpl& source, ByteRange from, StorageImpl& target, ByteRange to);

    // Called under the locks, when there is memory for the bytes that are written.
    [[nodiscard]] Result<driver::Timepoint> write_there(const Execution& execution, StorageImpl& storage,
                                                        const StorageRect& rect, const std::byte* from,
                                                        driver::RectLayout from_layout);
    // The state of one command that copies from storage to storage.
    struct Copying {
        Sequence& sequence;
        const Execution& execution;
        StorageImpl& source;
        StorageImpl& target;
        StagingSlots* slots = nullptr;
        Version version{};  // the version that the written bytes get
        struct Read {
            SpaceId space{};
            driver::Timepoint done{};
            [[nodiscard]] TouchKind kind(const Execution& by) const {
                return done.queue == &by.queue ? TouchKind::user_read : TouchKind::hidden_read;
            }
        };
        Read last_read{};
    };
    [[nodiscard]] Result<driver::Timepoint> copy_there(Copying& copying, const StorageRect& from_rect,
                                                       const StorageRect& to_rect);
    // Submits and commits the copying of a part of the two rectangles, whose rows are prepared.
    [[nodiscard]] Result<void> copy_rect(Copying& copying, const StorageRect& from_rect, const StorageRect& to_rect);
    // Whether some bytes of `rect` need staging in more than one chunk to reach `target`.
    [[nodiscard]] bool has_long_copy(StorageImpl& storage, const StorageRect& rect, SpaceId target) const;
    // The same chunk by chunk: the storages are locked for one chunk at a time, so that other threads can use them in between.
    [[nodiscard]] Result<driver::Timepoint> copy_in_chunks(Copying& copying, const StorageRect& from_rect,
                                                           const StorageRect& to_rect);
    [[nodiscard]] Result<driver::Timepoint> copy_chunk(Copying& copying, const StorageRect& from_rect,
                                                       const StorageRect& to_rect, const Chunk& chunk);
    [[nodiscard]] Result<driver::Timepoint> end_chunks(Copying& copying, const StorageRect& from_rect,
                                                       const StorageRect& to_rect);
    [[nodiscard]] Result<driver::Timepoint> fill_there(const Execution& execution, StorageImpl& storage,
                                                       const StorageRect& rect, std::span<const std::byte> pattern);

    // --- maps and migration; domain_maps.cpp ---
    // Returns std::nullopt when this is not a common case, like the functions of domain_in_place.cpp above.
    [[nodiscard]] static std::optional<InPlace> map_in_place(const Execution& execution, StorageImpl& storage,
                                                             ByteRange range, Access access);
    [[nodiscard]] Result<driver::Timepoint> map_there(Sequence& sequence, StorageImpl& storage, const StorageRect& rect,
                                                      MapAccess access);
    [[nodiscard]] Result<driver::Timepoint> migrate_there(Sequence& sequence, std::span<const Use> ranges,
                                                          SpaceId target, Content content);

    // --- kernels; domain_launch.cpp ---
    [[nodiscard]] Result<void> prepare_by_plan(LaunchPlan& launch);

    const DomainOptions options_;
    const bool can_evict_;
    const bool has_unified_;  // some device can share blocks with the host
    const std::shared_ptr<const SpaceTable> space_table_;
    Mover mover_;
    LedgerImpl ledger_;
    std::atomic<uint64_t> announced_{0};
    CountByThread promised_;
    std::array<FairTurns::Flow, SpaceId::max_spaces> flows_;
    // The device memories in which storages have got memory so far, as SpaceSet::bits. Written under the mutex.
    std::atomic<uint64_t> spaces_used_{0};
    Mutex staging_mutex_;
};

}  // namespace polder::memory
