// fork(): how Polder works in the child of a process that has used it. The child has a copy of all memory, but only the thread
// that called fork(). It must never wait for a thread that does not exist there: for a lock that the thread held, or
// for work that it would have done.
//
// Therefore a fork waits until no thread is inside of Polder:
// - Each entry point of the API holds an `Inside` while it runs. A fork closes a gate: threads of the application that
//   enter then wait at the gate; threads that are inside continue.
// - An object that owns threads is a ForkParticipant, and is locked during the fork. It is quiet when none of its threads works.
//
// When all are quiet, the child can use all objects, and starts threads again when they are needed. When they are not quiet
// within `quiet_wait_ms` (a thread waits for an event or builds a program, a kernel runs), the child is *cut
// off*: lib/api returns an error for every call and accesses no object. The fork takes up to `quiet_wait_ms` longer in
// the parent. Processes that are created without fork handlers (posix_spawn, vfork, system) are not delayed.
//
// A thread that forks in a callback is inside; the fork does not wait for it, because callbacks run without locks.
#pragma once

#include <atomic>
#include <cstdint>

namespace polder {

class ForkParticipant {
public:
    // Called by the forking thread before and after the fork. While locked, the participant must not change in either process.
    virtual void lock_for_fork() = 0;
    virtual void unlock_after_fork() = 0;
    // Called while locked. True when no thread of this participant is working.
    [[nodiscard]] virtual bool is_quiet() const = 0;
    // Called in the child while locked. The threads do not exist there: they must not be joined, and what they owned is leaked.
    virtual void forget_threads() = 0;

protected:
    ~ForkParticipant() = default;
};

// While this object exists, forks call the participant. It must be the participant's last member, so that the others exist all that time.
class ForkMembership {
public:
    explicit ForkMembership(ForkParticipant& participant);
    ForkMembership(const ForkMembership&) = delete;
    ForkMembership& operator=(const ForkMembership&) = delete;
    ~ForkMembership();

private:
    friend struct ForkHandlers;
    ForkParticipant& participant_;
    ForkMembership* next_ = nullptr;
};

namespace fork_state {

inline constexpr uint32_t quiet_wait_ms = 20;

// `open` is the usual state, and the only one in which entering is fast.
enum class Gate : uint8_t { not_ready, open, closed, cut_off };
extern constinit std::atomic<Gate> gate;

// A thread that has been inside, in a list of all of them (fork.cpp).
struct Thread {
    std::atomic<uint32_t> depth{0};  // how many `Inside` the thread has; above 1 in callbacks that call entry points
    bool is_listed = false;
    Thread* next = nullptr;
    Thread* previous = nullptr;
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local Thread this_thread;

// While this object exists, the calling thread is inside of Polder.
//
// Entering is Dekker's handshake: this side writes the depth, then reads the gate; a fork writes the gate, then reads the depths. This
// side has no fence, because the fork makes all threads of the process execute one (membarrier(2)). On systems without membarrier the
// gate is never `open`, so that threads use the slow path, which has a fence.
class Inside {
public:
    Inside() : me_(this_thread) {
        me_.depth.store(me_.depth.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (gate.load(std::memory_order_acquire) != Gate::open || !me_.is_listed) [[unlikely]]
            is_cut_off_ = enter_slowly(me_);
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() { me_.depth.store(me_.depth.load(std::memory_order_relaxed) - 1, std::memory_order_release); }

    // True in the child of a process that forked while not all was quiet (see above).
    [[nodiscard]] bool is_cut_off() const { return is_cut_off_; }

private:
    // Returns is_cut_off().
    [[gnu::cold]] static bool enter_slowly(Thread& me);

    Thread& me_;
    bool is_cut_off_ = false;
};

}  // namespace fork_state
}  // namespace polder
