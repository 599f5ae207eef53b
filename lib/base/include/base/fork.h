// fork(): what becomes of Polder in the child of a process that has used it. The child has a copy of all memory and
// none of the threads but the one that forked. It must never wait for a thread that does not exist in it: for a lock that it held, or
// for work that it would have done.
//
// So before a fork, nothing of Polder may be in the midst of something:
// - Threads of the application are outside of Polder. Each entry point is an `Inside` while it runs. A fork closes the
//   gate: who is outside waits in front of it, who is inside may go on.
// - What owns threads is a ForkParticipant, and is locked. It is quiet when none of its threads is at work.
//
// When all is quiet, the child goes on with what there was, and threads are started again when needed. When it does not
// become so within `quiet_wait_ms` (a thread waits for an event or builds a program, a kernel runs), the child is *cut
// off*: lib/api fails every call with an error before anything is touched. The parent never notices, but for the
// wait. Processes made without fork handlers (posix_spawn, vfork, system) are not held up.
//
// Who forks in a callback of its own is inside, and not waited for: callbacks run without locks.
#pragma once

#include <atomic>
#include <cstdint>

namespace polder {

class ForkParticipant {
public:
    // Around the fork, in the forking thread: nothing changes in between, in neither process.
    virtual void lock_for_fork() = 0;
    virtual void unlock_after_fork() = 0;
    // While locked: no thread of this participant is at work.
    [[nodiscard]] virtual bool is_quiet() const = 0;
    // While locked, in the child: the threads do not exist. Nothing may be joined, what they owned is leaked.
    virtual void forget_threads() = 0;

protected:
    ~ForkParticipant() = default;
};

// While it lives, the participant is notified of forks. Its last member, so that it is complete by then.
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

// `open` is the usual one, and the only one in which entering costs next to nothing.
enum class Gate : uint8_t { not_ready, open, closed, cut_off };
extern constinit std::atomic<Gate> gate;

// A thread that has been inside, in a list of all of them (fork.cpp).
struct Thread {
    std::atomic<uint32_t> depth{0};  // above 1 in callbacks that call entry points
    bool is_listed = false;
    Thread* next = nullptr;
    Thread* previous = nullptr;
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local Thread this_thread;

// While it lives, the calling thread is inside of Polder.
//
// Entering is Dekker's handshake, depth before gate here and gate before depth in a fork, without a fence on this side: the
// fork makes all threads of the process execute one (membarrier(2)). Where that is missing the gate is never
// `open`, and the slow path has the fence.
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

    // True in the child of a process that forked while something was in the midst of Polder.
    [[nodiscard]] bool is_cut_off() const { return is_cut_off_; }

private:
    // Answers is_cut_off.
    [[gnu::cold]] static bool enter_slowly(Thread& me);

    Thread& me_;
    bool is_cut_off_ = false;
};

}  // namespace fork_state
}  // namespace polder
