// StorageGuard: locks the storages of one command while it is planned, submitted and committed.
//
// There is no lock per storage: a kernel with eight buffers would take eight. Each storage names one lock of a table of
// 128 that all contexts share. The first 64 belong to threads: storages that one thread has used the last four times name
// that thread's lock, so that a command on them takes a single lock that no other thread wants. A storage whose user changes
// moves to one of the other 64, chosen by its address, until one thread alone uses it again.
//
// Locks are taken in ascending order of their number. A storage may name another lock by the time its lock is held; then all
// locks are released and the guard starts again. Only the holder of a storage's lock changes which lock it names, and does
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
    // Of the lock in the table; for tests.
    [[nodiscard]] uint32_t number() const { return number_.load(std::memory_order_relaxed); }

private:
    friend class StorageGuard;
    std::atomic<uint8_t> number_;
    // Guarded by the lock.
    uint8_t last_thread_;  // the number of its lock
    uint8_t uses_in_a_row_ = 0;
};

class StorageGuard {
public:
    // `uses` is not empty, and stays as it is.
    explicit StorageGuard(std::span<const Use> uses) : uses_(uses) { lock(); }
    explicit StorageGuard(Storage& storage) : one_{&storage}, uses_(&one_, 1) { lock(); }
    ~StorageGuard();
    // Without any lock: lets the threads that wait for the storage's lock go first. A call that locks a storage again and
    // again uses it in between; a mutex alone would favour that call.
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
    Numbers held_;  // of several
};

}  // namespace polder::memory
