// The Storage's one implementation: its residency, and its memory in every space that has been asked for any.
//
// Everything but the constants and the atomics is guarded by the storage's lock (storage_guard.h). The destructor needs no
// lock: no other reference is left.
#pragma once

#include "residency/residency.h"
#include "storage_guard.h"

#include <base/recycled.h>
#include <memory/lease.h>
#include <memory/storage.h>

#include <atomic>
#include <cassert>
#include <optional>
#include <vector>

namespace polder::memory {

class DomainImpl;

// Of every replica: a cache line pair, and the widest OpenCL type.
inline constexpr Alignment block_alignment{128};

class StorageImpl final : public Storage, public Recycled<StorageImpl> {
public:
    StorageImpl(DomainImpl& domain, ByteCount size);
    ~StorageImpl() override;

    [[nodiscard]] ByteCount size() const override { return residency_.size(); }
    [[nodiscard]] Domain& domain() const override;
    [[nodiscard]] std::byte* map_address() const override { return map_address_.load(std::memory_order_acquire); }
    void on_destroyed(CompletionCallback callback) override { destroyed_ = callback; }
    void run_when_idle(ByteRange range, CompletionCallback callback) override;
    void wait_until_idle() override;
    [[nodiscard]] bool validate() const override;

    // For messages: counts the storages that have been spoken of.
    [[nodiscard]] uint64_t number() const;
    [[nodiscard]] Residency& residency() { return residency_; }
    [[nodiscard]] SpaceId map_place() const { return map_place_; }
    [[nodiscard]] StorageLock& storage_lock() { return storage_lock_; }

    // Of its memory in `space`, which it has.
    [[nodiscard]] DeviceAddress address(SpaceId space) const {
        for (const Replica& known : replicas_)
            if (known.space == space)
                return known.address;
        assert(false && "no memory was reserved there");
        __builtin_unreachable();
    }
    // Without the storage's lock.
    [[nodiscard]] bool has_replica(SpaceId space) const {
        return (replica_spaces_.load(std::memory_order_acquire) >> space.value) & 1;
    }
    // Whether the storage's memory in `space` is whole and stays where it is (Domain::pin).
    [[nodiscard]] bool is_pinned(SpaceId space) const {
        return (pinned_spaces_.load(std::memory_order_relaxed) >> space.value) & 1;
    }
    void pin(SpaceId space) { pinned_spaces_.fetch_or(SpaceSet{space}.bits, std::memory_order_relaxed); }
    // One thread at a time allocates a storage's memory in one space, so that it is allocated once. Other threads wait.
    class AllocationGuard {
    public:
        AllocationGuard(StorageImpl& storage, SpaceId space);
        ~AllocationGuard();
        AllocationGuard(const AllocationGuard&) = delete;
        AllocationGuard& operator=(const AllocationGuard&) = delete;

    private:
        std::atomic<uint64_t>& allocating_;
        const uint64_t bit_;
    };

    // The storage's memory in `space`, used from when Lease::after is complete. std::bad_alloc leaves it to the caller.
    void add_block(SpaceId space, const Lease& lease);
    void add_application_memory(std::byte* memory);
    void write_initially(SpaceId space) {
        const ByteRange all{0, size().value};
        residency_.commit_write({&all, 1}, space, Version{1}, {});  // all: nothing to prepare
    }

private:
    struct Replica {
        SpaceId space;
        DeviceAddress address;
        std::optional<Block> block;  // none: the application's memory
    };
    void add_replica(const Replica& replica);
    void give_back() noexcept;
    void give_back(const Replica& replica) noexcept;

    DomainImpl& domain_;
    StorageLock storage_lock_;
    mutable std::atomic<uint64_t> number_{0};  // 0: not asked for yet
    Residency residency_;
    SmallVector<Replica, 1> replicas_;
    std::atomic<uint64_t> replica_spaces_{0};  // as SpaceSet::bits
    std::atomic<uint64_t> allocating_{0};  // likewise
    std::atomic<uint64_t> pinned_spaces_{0};  // likewise
    std::atomic<std::byte*> map_address_{nullptr};
    SpaceId map_place_ = host_space;
    CompletionCallback destroyed_;
};

}  // namespace polder::memory
