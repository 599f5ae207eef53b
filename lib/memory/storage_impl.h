// The implementation of Storage: its residency, and its memory in each space where it has some.
//
// Everything but the constants and the atomics is guarded by the storage's lock (storage_guard.h). The destruction needs no lock, because no
// other reference is left. It never waits, and does not fail without memory: when the host has no memory for the list of operations in
// flight, the object stays until there is memory or nothing is in flight (Retried).
#pragma once

#include "allocation/sparse.h"
#include "announced.h"
#include "residency/replicas.h"
#include "residency/residency.h"
#include "space/residents.h"
#include "storage_guard.h"

#include <base/rare.h>
#include <base/recycled.h>
#include <memory/lease.h>
#include <memory/storage.h>
#include <memory/trace.h>

#include <array>
#include <atomic>
#include <cassert>
#include <memory>
#include <new>
#include <optional>
#include <vector>

namespace polder::memory {

class DomainImpl;
class SpaceImpl;
using SpaceTable = std::array<SpaceImpl*, SpaceId::max_spaces>;

// The alignment of every replica: a cache line pair, and the size of the largest OpenCL type.
inline constexpr Alignment block_alignment{128};

class StorageImpl final : public Storage, public Recycled<StorageImpl>, private Retried {
public:
    StorageImpl(DomainImpl& domain, ByteCount size, SpaceSet in_place = {});
    ~StorageImpl() override;
    using Recycled<StorageImpl>::operator delete;
    // Called when the last reference is released. Ends the storage, now or by retries.
    static void operator delete(StorageImpl* storage, std::destroying_delete_t) noexcept;

    [[nodiscard]] ByteCount size() const override { return residency_.size(); }
    [[nodiscard]] Domain& domain() const override;
    [[nodiscard]] std::byte* map_address() const override { return map_address_.load(std::memory_order_acquire); }
    void on_destroyed(CompletionCallback callback) override { destroyed_ = callback; }
    [[nodiscard]] bool run_when_idle(ByteRange range, CompletionCallback callback) noexcept override;
    [[nodiscard]] bool is_idle(ByteRange range) noexcept override;
    void wait_until_idle() override;
    void add_handle() noexcept override { handles_.fetch_add(1, std::memory_order_relaxed); }
    void remove_handle() noexcept override;
    [[nodiscard]] bool validate() const override;

    // Records a trace event about this storage.
    void record_event(trace::Kind kind, ByteRange range, SpaceId space = {}, DeviceAddress address = {}) const;
    [[nodiscard]] Residency& residency() { return residency_; }
    [[nodiscard]] const Residency& residency() const { return residency_; }
    [[nodiscard]] SpaceId map_place() const { return map_place_; }
    // The memory in which a device that computes in `space` uses the storage: host memory where the device uses that in place.
    [[nodiscard]] SpaceId place_of(SpaceId space) const { return in_place_.contains(space) ? host_space : space; }
    [[nodiscard]] bool is_in_place_of(SpaceId space) const { return in_place_.contains(space); }
    [[nodiscard]] StorageLock& storage_lock() { return storage_lock_; }

    // --- its memory; with the storage's lock ---
    [[nodiscard]] const Replicas& replicas() const { return replicas_; }
    // The address that byte 0 would have if the memory of `range` in `space` extended down to it. `range` has memory there.
    [[nodiscard]] DeviceAddress base(SpaceId space, ByteRange range) const {
        const Replica* const replica = replicas_.find(space, range);
        assert(replica && "no memory was reserved there");
        return replica->base;
    }
    // The address of range.begin in `space`, if all of `range` has memory there in one piece; otherwise std::nullopt.
    [[nodiscard]] std::optional<DeviceAddress> find(SpaceId space, ByteRange range) const {
        const Replica* const replica = replicas_.find(space, range);
        return replica ? std::optional{replica->base.plus(range.begin)} : std::nullopt;
    }

    // --- without the lock: the results may be out of date. Memory is only added under the AllocationGuard ---
    [[nodiscard]] bool has_replica(SpaceId space) const {
        return (replica_spaces_.load(std::memory_order_acquire) >> space.value) & 1;
    }
    // Whether the storage's memory in `space` is whole and stays where it is (Domain::pin).
    [[nodiscard]] bool is_pinned(SpaceId space) const {
        return (pinned_spaces_.load(std::memory_order_relaxed) >> space.value) & 1;
    }
    // Returns whether it was pinned before.
    bool pin(SpaceId space) {
        const uint64_t bit = SpaceSet{space}.bits;
        return (pinned_spaces_.fetch_or(bit, std::memory_order_relaxed) & bit) != 0;
    }
    void unpin(SpaceId space) { pinned_spaces_.fetch_and(~SpaceSet{space}.bits, std::memory_order_relaxed); }
    // True when the application may free its memory, so that nothing must be written to it any more. Called with the lock.
    [[nodiscard]] bool is_released() const { return is_released_; }
    // Stops using the application's memory as a replica, so that bytes can be written back elsewhere. False, and nothing has changed, when
    // that is not possible now. Called with the lock, when is_released().
    [[nodiscard]] bool leave_map_place() noexcept;
    // Notes that a transfer to or from the place of maps may be in flight for which no command of the application waits: the transfer of an
    // eviction, or of a command that has failed. Called with the lock.
    void note_unknown_transfer() noexcept { has_unknown_transfers_ = true; }
    // Notes that a command uses `range`, which has memory in `space`, when memory is short there.
    void note_use(SpaceId space, ByteRange range, uint64_t number) noexcept {
        replicas_.note_use(space, range, number);
    }

    // --- what commands that are held back will use, in the order in which they were enqueued; with the lock ---
    void announce(const Announced::Use& use) {
        if (!announced_)
            announced_.reset(new Announced);
        announced_->add(use);
    }
    void withdraw(uint64_t number) noexcept {
        if (announced_)
            announced_->withdraw(number);
    }
    [[nodiscard]] uint64_t next_use(SpaceId space, ByteRange range) const {
        return announced_ ? announced_->next_use(space, range) : ~uint64_t{0};
    }

    // --- maps that the application holds: their memory stays where it is. Any thread ---
    void pin_map() override { map_pins_.fetch_add(1, std::memory_order_acq_rel); }
    void unpin_map() override { map_pins_.fetch_sub(1, std::memory_order_acq_rel); }
    [[nodiscard]] bool is_mapped() const { return map_pins_.load(std::memory_order_acquire) != 0; }

    [[nodiscard]] DomainImpl& owner() const { return domain_; }
    // This storage's entry in the list of storages that have memory in `space`; made by make_room_for_replicas. Called with the lock.
    [[nodiscard]] Residents::Entry* resident_entry(SpaceId space) noexcept;

    // Record that memory in `space` was evicted, or was added again. Return whether it was recorded as evicted before.
    bool note_evicted(SpaceId space) { return exchange_evicted(space, true); }
    bool note_returned(SpaceId space) { return exchange_evicted(space, false); }

    // One thread at a time adds memory to a storage in one space, so that it is allocated once. Other threads wait.
    void begin_allocating(SpaceId space) noexcept {
        if (!try_begin_allocating(space)) [[unlikely]]
            wait_to_allocate(space);
    }
    // False when another thread does.
    [[nodiscard]] bool try_begin_allocating(SpaceId space) noexcept {
        const uint64_t bit = SpaceSet{space}.bits;
        return (allocating_.fetch_or(bit, std::memory_order_acq_rel) & bit) == 0;
    }
    // Notifies only when a thread waits, because notifying writes to a table of the process. A waiter counts itself, then reads the bit.
    void end_allocating(SpaceId space) noexcept {
        allocating_.fetch_and(~SpaceSet{space}.bits, std::memory_order_acq_rel);
        if (allocation_waiters_.load(std::memory_order_relaxed) != 0) [[unlikely]]
            allocating_.notify_all();
    }

    // Makes room for `count` more replicas in `space`. std::bad_alloc leaves the storage as it was.
    void make_room_for_replicas(uint32_t count, SpaceId space);
    // Call make_room_for_replicas before.
    void add_replica(const Replica& replica) noexcept;
    // Frees the memory of `replica`. Other spaces must hold all its bytes.
    void remove_replica(const Replica& replica) noexcept;
    // The addresses in which the storage's parts in host memory are; null when it has none.
    [[nodiscard]] Stretch* stretch() const { return stretch_.get(); }
    void set_stretch(std::unique_ptr<Stretch> stretch) { stretch_ = std::move(stretch); }
    // Gives back all parts of the stretch, and the stretch.
    void remove_stretch() noexcept;
    void add_application_memory(std::byte* memory);

    // --- a block that the host and one device share (storage_link.cpp); with the lock ---
    [[nodiscard]] bool is_linked() const { return linked_ != nullptr; }
    // Whether the replica in `space` is the host's block.
    [[nodiscard]] bool is_linked_to(SpaceId space) const { return linked_ && linked_->space == space; }
    // Makes `space` share the host's block. The whole storage has pinned host memory, and none in `space`.
    void link(SpaceId space);
    // Makes `space` the owner of `range`, after everything that uses it in the other space. Does nothing when no block is shared, or when
    // `space` is neither host memory nor the device's. Makes a change again that has failed before.
    [[nodiscard]] Result<void> own(ByteRange range, SpaceId space);
    // Host memory that belonged to another storage before may still be owned by a device: the map at the end of that storage is in flight or has failed.
    // Commands in host memory wait for that map, and fail when it fails. Makes failed maps again. Adds all maps to `after`, unless it is null.
    [[nodiscard]] Result<void> inherit_maps(ByteRange range, DeviceAddress base, Timepoints* after);
    [[nodiscard]] bool has_inherited_maps() const { return has_inherited_maps_; }
    // The same for all host memory of the storage.
    [[nodiscard]] Result<void> inherit_maps_again();
    void write_initially(SpaceId space) {
        const ByteRange all{0, size().value};
        residency_.commit_write({&all, 1}, space, Version{1}, {});  // one piece: needs no prepare
    }

private:
    // The owner of a range: `space`, then the target of each change that has succeeded. Each change waits for the one before it.
    struct Owner {
        struct Change {
            SpaceId to;
            driver::Timepoint done;
            friend bool operator==(const Change&, const Change&) = default;
        };
        SpaceId space;
        std::vector<Change> changes{};
        bool has_failed_touches = false;  // of changes that have failed; nothing must wait for them

        // The owner after all changes, if they succeed.
        [[nodiscard]] SpaceId last() const { return changes.empty() ? space : changes.back().to; }
        void settle() noexcept;
        bool absorb(Owner& next) {
            settle();
            next.settle();
            return space == next.space && changes == next.changes && has_failed_touches == next.has_failed_touches;
        }
    };
    struct Linked {
        SpaceId space;  // of the device
        RangeMap<Owner> owners;
    };
    bool exchange_evicted(SpaceId space, bool is_evicted) {
        const uint64_t bit = SpaceSet{space}.bits;
        const uint64_t before = is_evicted ? evicted_spaces_.fetch_or(bit, std::memory_order_relaxed)
                                           : evicted_spaces_.fetch_and(~bit, std::memory_order_relaxed);
        return (before & bit) != 0;
    }
    void note_last_maps(DeviceAddress base);
    void wait_to_allocate(SpaceId space) noexcept;
    [[nodiscard]] driver::Timepoint transfer_at_map_place() const;
    // Record in which spaces the storage has memory, after one replica was added, or after any change. Called with the lock.
    void note_space(const Replica& added) noexcept;
    void note_spaces() noexcept;
    void give_back(const Replica& replica) noexcept;
    void give_back_stretch() noexcept;

    // --- destruction ---
    [[nodiscard]] bool was_never_used() const { return replicas_.empty() && !stretch_ && !destroyed_.function; }
    [[nodiscard]] bool end_unlisted() noexcept;
    void leave_lists() noexcept;
    void delete_other_entries() noexcept;
    // Removes the storage from the list of residents of `space`, where it has no memory any more.
    void leave_list(SpaceId space) noexcept;
    // Frees all memory. False when the host has no memory for a list; then the storage may still have some memory.
    [[nodiscard]] bool try_to_end() noexcept;
    [[nodiscard]] bool try_again() noexcept override;
    void destroy() noexcept;
    [[nodiscard]] Timepoints uses_of(ByteRange range, SpaceId space) const;
    [[nodiscard]] SpaceImpl& space(SpaceId id) const;

    DomainImpl& domain_;
    std::shared_ptr<const SpaceTable> spaces_;  // set when the storage outlives its domain
    StorageLock storage_lock_;
    Residency residency_;
    Replicas replicas_;
    std::unique_ptr<Stretch> stretch_;
    Rare<Linked> linked_;
    std::atomic<uint64_t> replica_spaces_{0};  // as SpaceSet::bits
    std::atomic<uint64_t> allocating_{0};  // likewise
    std::atomic<uint32_t> allocation_waiters_{0};  // threads
    std::atomic<uint64_t> pinned_spaces_{0};  // likewise
    std::atomic<uint64_t> evicted_spaces_{0};  // likewise
    std::atomic<uint32_t> map_pins_{0};
    Rare<Announced> announced_;  // null until a use is announced
    // The entry for the space where memory was first reserved; entries for other spaces are linked to it.
    Residents::Entry first_entry_;
    std::atomic<std::byte*> map_address_{nullptr};
    SpaceId map_place_ = host_space;
    const SpaceSet in_place_;
    std::atomic<uint32_t> handles_{0};
    bool is_released_ = false;
    bool has_unknown_transfers_ = false;
    bool has_inherited_maps_ = false;
    CompletionCallback destroyed_;
};

[[nodiscard]] inline StorageImpl& impl_of(const Use& use) { return static_cast<StorageImpl&>(*use.storage); }

}  // namespace polder::memory
