// The table of locks, and the guard. It computes the set of lock numbers of all storages, takes these locks in ascending order, and checks
// that no storage has got another lock meanwhile. Otherwise it releases the locks and starts again.
#include "storage_guard.h"

#include "storage_impl.h"

#include <base/biased_mutex.h>
#include <base/thread_number.h>

#include <bit>
#include <chrono>
#include <thread>

namespace polder::memory {
namespace {

constexpr uint32_t thread_locks = 64;
constexpr uint32_t shared_locks = 64;
constexpr uint8_t uses_to_own = 4;

// A lock in the table. It has a cache line pair of its own, because different threads use neighbouring entries.
class alignas(128) TableEntry {
public:
    void lock() noexcept POLDER_NO_THREAD_SAFETY_ANALYSIS {
        bool has_met = false;
        const BiasedMutex::Held held = mutex_.lock([&] {
            waiting_.fetch_add(1, std::memory_order_relaxed);
            has_met = true;
        });
        held_ = held;
        if (has_met) [[unlikely]] {
            waiting_.fetch_sub(1, std::memory_order_relaxed);
            served_.fetch_add(1, std::memory_order_relaxed);
        }
    }
    void unlock() noexcept POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(held_); }
    // Returns when the threads that wait now have had the lock, or after a time that the system may take to run a thread again.
    void pass() const noexcept {
        constexpr auto time_max = std::chrono::milliseconds(10);
        const uint32_t before = served_.load(std::memory_order_relaxed);
        const uint32_t waiting = waiting_.load(std::memory_order_relaxed);
        if (waiting == 0) [[likely]]
            return;
        const auto end = std::chrono::steady_clock::now() + time_max;
        while (served_.load(std::memory_order_relaxed) - before < waiting && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
    }

private:
    BiasedMutex mutex_;
    BiasedMutex::Held held_{};  // how it is locked; guarded by it
    std::atomic<uint32_t> waiting_{0};  // threads
    std::atomic<uint32_t> served_{0};  // threads that have waited, and had the lock; wraps
};
TableEntry table[thread_locks + shared_locks];

// The number of the calling thread's lock. When there are more threads than such locks, threads share them.
uint8_t this_thread() { return static_cast<uint8_t>(thread_number() % thread_locks); }

uint8_t shared_lock_of(const void* storage) {
    constexpr uint64_t golden_ratio = 0x9E3779B97F4A7C15;
    return static_cast<uint8_t>(thread_locks + ((reinterpret_cast<uintptr_t>(storage) * golden_ratio) >> 58));
}
static_assert(shared_locks == 64, "6 bits");

template <class F>
void for_each_ascending(const std::array<uint64_t, 2>& numbers, F&& f) {
    for (uint32_t word = 0; word < numbers.size(); ++word)
        for (uint64_t rest = numbers[word]; rest != 0; rest &= rest - 1)
            f(table[64 * word + static_cast<uint32_t>(std::countr_zero(rest))]);
}

}  // namespace

uint32_t StorageGuard::number_of(const Use& use) {
    return impl_of(use).storage_lock().number_.load(std::memory_order_acquire);
}

StorageLock::StorageLock() : number_(this_thread()), last_thread_(this_thread()) {}

// The number of the lock that all storages name; `several` when they name different ones.
uint32_t StorageGuard::wanted_only() const {
    const uint32_t first = number_of(uses_.front());
    for (const Use& use : uses_.subspan(1))
        if (number_of(use) != first)
            return several;
    return first;
}

StorageGuard::Numbers StorageGuard::wanted() const {
    Numbers numbers{};
    for (const Use& use : uses_) {
        const uint32_t number = number_of(use);
        numbers[number / 64] |= uint64_t{1} << (number % 64);
    }
    return numbers;
}

void StorageGuard::pass(Storage& storage) noexcept { table[number_of(Use{&storage})].pass(); }

// Most commands use one storage.
void StorageGuard::lock() noexcept {
    if (uses_.size() == 1) [[likely]] {
        for (;;) {
            only_ = number_of(uses_.front());
            table[only_].lock();
            if (number_of(uses_.front()) == only_) [[likely]]
                return;
            table[only_].unlock();
        }
    }
    while ((only_ = wanted_only()) != several) {
        table[only_].lock();
        if (wanted_only() == only_) [[likely]]
            return;
        table[only_].unlock();
    }
    lock_several();
}

// The storages may have got other locks since `wanted` was computed, so this checks again after locking.
void StorageGuard::lock_several() noexcept {
    for (;;) {
        held_ = wanted();
        for_each_ascending(held_, [](TableEntry& entry) { entry.lock(); });
        const Numbers now = wanted();
        if ((now[0] & ~held_[0]) == 0 && (now[1] & ~held_[1]) == 0) [[likely]]
            return;
        for_each_ascending(held_, [](TableEntry& entry) { entry.unlock(); });
    }
}

bool StorageGuard::holds(uint32_t number) const {
    return only_ == several ? (held_[number / 64] >> (number % 64) & 1) != 0 : number == only_;
}

// A storage may be among the uses twice. After the first note_use it may name a lock that this guard does not hold; then other threads may
// access its record, and this function must not.
void StorageGuard::note_use(StorageImpl& storage, uint8_t thread) noexcept {
    StorageLock& lock = storage.storage_lock();
    const uint8_t number = lock.number_.load(std::memory_order_relaxed);
    if (!holds(number) || (number == thread && lock.last_thread_ == thread)) [[likely]]
        return;
    if (lock.last_thread_ != thread) {
        lock.last_thread_ = thread;
        lock.uses_in_a_row_ = 0;
        if (number < thread_locks)
            lock.number_.store(shared_lock_of(&storage), std::memory_order_release);
    } else if (number != thread && ++lock.uses_in_a_row_ >= uses_to_own) {
        lock.number_.store(thread, std::memory_order_release);
    }
}

StorageGuard::~StorageGuard() {
    const uint8_t thread = this_thread();
    if (uses_.size() == 1) [[likely]] {
        StorageImpl& storage = impl_of(uses_.front());
        if (only_ != thread || storage.storage_lock().last_thread_ != thread) [[unlikely]]
            note_use(storage, thread);
        table[only_].unlock();
        return;
    }
    for (const Use& use : uses_)
        note_use(impl_of(use), thread);
    if (only_ != several) [[likely]]
        table[only_].unlock();
    else
        for_each_ascending(held_, [](TableEntry& entry) { entry.unlock(); });
}

}  // namespace polder::memory
