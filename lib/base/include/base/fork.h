// fork(): what becomes of Polder in the child of a process that has used it. The child has a copy of all memory and
// none of the threads.
//
// Whoever owns threads is a ForkParticipant. Before a fork, all participants are locked; when all are quiet (no
// thread is in the midst of something), the child goes on with what there was, and threads are started again when
// needed. When they do not become quiet within `quiet_wait_ms`, work was in flight that nobody in the child will
// ever finish: the child is *cut off*, and lib/api answers every call with an error instead of hanging. The parent
// never notices. Processes made without fork handlers (posix_spawn, vfork, system) are not held up.
//
// A thread of the application that is inside of Polder while another forks is not a participant: that child must
// not touch the objects that the thread was working on (POSIX allows it only async-signal-safe functions anyway).
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
    // While locked, in the child: the threads are gone. Nothing may be joined, what they owned is leaked.
    virtual void forget_threads() = 0;

protected:
    ~ForkParticipant() = default;
};

// While it lives, the participant is told of forks. Its last member, so that it is complete by then.
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
extern std::atomic<bool> cut_off;

// True in the child of a process that forked with work in flight.
[[nodiscard]] inline bool is_cut_off() { return cut_off.load(std::memory_order_relaxed); }

} // namespace fork_state
} // namespace polder
