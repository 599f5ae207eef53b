// BiasedMutex: a mutex that belongs to the first thread that locks it, until another thread wants it. Until then, locking and unlocking have
// no atomic instructions, which take most of the time of a short critical section. From then on it is a WordMutex.
//
// The owner says that it is inside, then looks whether it is still the owner; the first other thread makes the mutex a shared one, then looks
// whether the owner is inside. This is Dekker's handshake without a fence on the owner's side: the other thread makes all threads of the process
// execute one (membarrier(2)), once in the life of a mutex, for some microseconds. Where the system refuses that, a mutex is a shared one from the
// beginning. After Dice, Moir, Scherer, "Quickly Reacquirable Locks", 2003.
//
// Any thread. No condition variable waits with it. It outlives all calls.
#pragma once

#include <base/process_fence.h>
#include <base/word_mutex.h>

#include <atomic>
#include <cstdint>

namespace polder {

namespace biased_mutex_state {
// Of this thread, and never of another one. 0 before it first locks a mutex.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local uint64_t thread_id = 0;
// Gives this thread an id. False: no mutex may have an owner.
[[gnu::cold]] [[nodiscard]] bool may_own();
}  // namespace biased_mutex_state

class POLDER_THREAD_ANNOTATION(capability("mutex")) BiasedMutex {
public:
    enum class Held : uint8_t { by_owner, by_any };  // how it was locked, for unlock

    BiasedMutex() = default;
    BiasedMutex(const BiasedMutex&) = delete;
    BiasedMutex& operator=(const BiasedMutex&) = delete;

    [[nodiscard]] Held lock() noexcept POLDER_THREAD_ANNOTATION(acquire_capability()) POLDER_NO_THREAD_SAFETY_ANALYSIS {
        return lock([] {});
    }
    // Calls met() before it waits for another thread.
    template <class Met>
    [[nodiscard]] Held lock(Met&& met) noexcept
        POLDER_THREAD_ANNOTATION(acquire_capability()) POLDER_NO_THREAD_SAFETY_ANALYSIS {
        if (enter() || (owner_.load(std::memory_order_relaxed) == unowned && own())) [[likely]]
            return Held::by_owner;
        if (!shared_mutex_.try_lock()) [[unlikely]] {
            met();
            shared_mutex_.lock();
        }
        if (owner_.load(std::memory_order_relaxed) != shared) [[unlikely]]
            take_from_owner();
        return Held::by_any;
    }
    void unlock(Held held) noexcept POLDER_THREAD_ANNOTATION(release_capability()) POLDER_NO_THREAD_SAFETY_ANALYSIS {
        if (held == Held::by_owner) [[likely]]
            leave();
        else
            shared_mutex_.unlock();
    }

private:
    static constexpr uint64_t unowned = ~uint64_t{0};  // before it is first locked
    static constexpr uint64_t shared = unowned - 1;  // for ever

    [[nodiscard]] bool is_mine() const {
        return owner_.load(std::memory_order_relaxed) == biased_mutex_state::thread_id;
    }
    [[nodiscard]] bool enter() noexcept {
        if (!is_mine())
            return false;
        is_inside_.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (is_mine()) [[likely]]
            return true;
        leave();
        return false;
    }
    void leave() noexcept {
        is_inside_.store(0, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (!is_mine()) [[unlikely]]
            wake();
    }
    [[gnu::noinline]] void wake() noexcept {
        is_inside_.exchange(0, std::memory_order_seq_cst);  // a fence before the look for waiting threads
        is_inside_.notify_one();
    }
    [[gnu::noinline]] bool own() noexcept {
        uint64_t before = unowned;
        const bool may = biased_mutex_state::may_own();
        const uint64_t owner = may ? biased_mutex_state::thread_id : shared;
        return owner_.compare_exchange_strong(before, owner, std::memory_order_relaxed) && may && enter();
    }
    // Holding shared_mutex_.
    [[gnu::noinline]] void take_from_owner() noexcept {
        if (owner_.exchange(shared, std::memory_order_relaxed) == unowned)
            return;
        fence_all_threads();
        // What the owner did inside happened before.
        while (is_inside_.load(std::memory_order_acquire) != 0)
            is_inside_.wait(1, std::memory_order_acquire);
    }

    std::atomic<uint64_t> owner_{unowned};  // a thread's id
    std::atomic<int> is_inside_{0};  // of the owner
    WordMutex shared_mutex_;
};

// Holds a BiasedMutex as Lock holds a Mutex.
class POLDER_THREAD_ANNOTATION(scoped_lockable) BiasedLock {
public:
    explicit BiasedLock(BiasedMutex& mutex) POLDER_THREAD_ANNOTATION(acquire_capability(mutex))
        : mutex_(mutex), held_(mutex.lock()) {}
    ~BiasedLock() POLDER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(held_); }
    BiasedLock(const BiasedLock&) = delete;
    BiasedLock& operator=(const BiasedLock&) = delete;
    [[nodiscard]] BiasedMutex::Held held() const { return held_; }

private:
    BiasedMutex& mutex_;
    const BiasedMutex::Held held_;
};

}  // namespace polder
