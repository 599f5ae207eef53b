// StorageGuard: locks the storages of one command while it is planned, submitted and committed.
//
// There is no separate lock for each storage, because a kernel with eight buffers would take eight. Each storage has the number of a
// lock in a table of 128 locks, which all contexts share. The first 64 locks belong to threads: a storage that one thread has used the
// last four times has that thread's lock, so that a command on such storages takes a single lock that no other thread needs. When
// another thread uses the storage, it gets one of the other 64 locks, chosen by its address, until only one thread uses it again.
//
// Locks are taken in ascending order of their number. When a storage got another lock before its lock was taken, all
// locks are released and the guard starts again. Only the holder of a storage's lock changes the storage's lock number, and does
// so last, after all other changes to the storage.
//
// Lives on the stack of one call, which keeps the storages alive. Any thread. Never throws.
#pragma once

#include <memory/domain.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

namespace polder::memory {

class StorageImpl;

// Which lock guards a storage, and who has used it. A member of the storage.
class StorageLock {
public:
    StorageLock();
    // The number of the lock in the table; for tests.
    [[nodiscard]] uint32_t number() const { return number_.load(std::memory_order_relaxed); }

private:
    friend class StorageGuard;
    std::atomic<uint8_t> number_;
    // Guarded by the lock that number_ names.
    uint8_t last_thread_;  // the number of the lock of the thread that used the storage last
    uint8_t uses_in_a_row_ = 0;
};

class StorageGuard {
public:
    // `uses` is not empty, and must not change while this object exists.
    explicit StorageGuard(std::span<const Use> uses) : uses_(uses) { lock(); }
    explicit StorageGuard(Storage& storage) : one_{&storage}, uses_(&one_, 1) { lock(); }
    ~StorageGuard();
    // Called without any lock: lets the threads that wait for the storage's lock take it first. A function that locks a storage
    // repeatedly calls it in between, because a mutex would favour that function.
    static void pass(Storage& storage) noexcept;
    StorageGuard(const StorageGuard&) = delete;
    StorageGuard& operator=(const StorageGuard&) = delete;

private:
    // A set of lock numbers.
    using Numbers = std::array<uint64_t, 2>;

    [[nodiscard]] static uint32_t number_of(const Use& use);
    void lock() noexcept;
    void lock_several() noexcept;
    [[nodiscard]] uint32_t wanted_only() const;
    [[nodiscard]] Numbers wanted() const;
    [[nodiscard]] bool holds(uint32_t number) const;
    void note_use(StorageImpl& storage, uint8_t thread) noexcept;

    static constexpr uint32_t several = ~uint32_t{0};

    Use one_;
    std::span<const Use> uses_;
    uint32_t only_ = several;  // the number of the one lock that is held
    Numbers held_;  // the numbers of the locks that are held, when there are several
};

}  // namespace polder::memory
