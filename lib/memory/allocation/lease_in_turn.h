// The slow path of every allocator: requests for memory in turn, first come, first served.
#pragma once

#include <base/scope_exit.h>
#include <memory/allocator.h>
#include <memory/turns.h>

#include <span>

namespace polder::memory {

// Calls `climb(i, leases[i])` for each lease while this thread has the turn. When one of them fails, by its result or by
// std::bad_alloc, `free(lease)`, which must not throw, is called for the leases before it. With Tried::no, `try_now` is called first;
// when it returns true, the request is complete.
// mem_object_allocation_failure when another thread has the turn and the request must not wait.
template <class TryNow, class Climb, class Free>
[[nodiscard]] Result<void> lease_in_turn(Turns& turns, WhenFull when_full, Tried tried, std::span<Lease> leases,
                                         const TryNow& try_now, const Climb& climb, const Free& free) {
    bool is_quiet = tried == Tried::no && when_full != WhenFull::fail;
    if (is_quiet)
        turns.enter_quietly();
    else if (when_full != WhenFull::fail)
        turns.enter();
    else if (!turns.try_enter())
        return fail(Status::mem_object_allocation_failure, "other requests are waiting for memory");
    const ScopeExit leave{[&] {
        if (is_quiet)
            turns.leave_quietly();
        else
            turns.leave();
    }};
    if (is_quiet) {
        if (try_now())
            return {};
        turns.insist();
        is_quiet = false;
    }
    size_t done = 0;
    const ScopeExit undo{[&] {
        if (done < leases.size())
            for (Lease& gained : leases.first(done))
                free(gained);
    }};
    for (; done < leases.size(); ++done)
        POLDER_TRY(climb(done, leases[done]));
    return {};
}

}  // namespace polder::memory
