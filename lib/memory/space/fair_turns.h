// FairTurns: gives one thread at a time the turn, in equal shares for each flow.
//
// Each request has a flow and a cost: here, the context and the bytes that it needs in a full memory. Flows with waiting requests get turns of the
// same total cost, regardless of how many threads wait and how large the requests are. Within a flow, requests are served first come, first served.
//
// Algorithm: start-time fair queueing (P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queueing", SIGCOMM 1996). A request starts (in units of
// cost) at the end of its flow's last request, or at the start of the request that has the turn, if that is later: a flow gets no credit for a
// time without requests. The earliest start is served next. Compared with its share, a flow waits for at most one more request of each other flow.
//
// A request needs the turn only while requested() is true, or when it finds no room. A request that waits only because requested() is true has not
// looked for room. It must not make later requests wait, or two threads that allocate in a loop would take turns for ever, with a thread switch for
// each allocation. So it enters "quietly", without being counted, and calls `insist` when it finds no room (as in memory/turns.h).
//
// Any thread may call any function; a thread leaves only after it has entered. Entering and leaving need no memory. Leaving examines all
// waiting threads and wakes one.
#pragma once

#include <base/mutex.h>
#include <memory/turns.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace polder::memory {

class FairTurns {
public:
    class Flow {
        friend FairTurns;
        // Guarded by the mutex of the turns.
        uint64_t end_ = 0;  // the end of its last request, in units of cost
        bool has_asked_ = false;
    };

    // Waits for the turn. Tried::yes: requested() is true until the thread leaves. Tried::no: the thread then calls leave_quietly or insist.
    void enter(Flow& flow, uint64_t cost, Tried tried = Tried::yes) {
        Lock lock(mutex_);
        if (tried == Tried::yes) {
            requests_.fetch_add(1, std::memory_order_relaxed);
            flow.has_asked_ = true;
        }
        Waiter me;
        me.start = std::max(now_, flow.end_);
        flow.end_ = me.start + std::max<uint64_t>(cost, 1);
        if (!is_held_) {
            is_held_ = true;
            now_ = me.start;
            return;
        }
        *last_ = &me;
        last_ = &me.next;
        while (!me.is_called)
            me.called.wait(mutex_);
    }
    // For a request that has entered quietly and found no room: from now on it is counted, and must call leave().
    void insist(Flow& flow) {
        Lock lock(mutex_);
        requests_.fetch_add(1, std::memory_order_relaxed);
        flow.has_asked_ = true;
    }
    // For a request that must not wait; false when another thread has the turn.
    [[nodiscard]] bool try_enter() {
        Lock lock(mutex_);
        if (is_held_)
            return false;
        is_held_ = true;
        requests_.fetch_add(1, std::memory_order_relaxed);
        return true;
    }
    void leave() {
        requests_.fetch_sub(1, std::memory_order_relaxed);
        leave_quietly();
    }
    void leave_quietly() {
        Lock lock(mutex_);
        call_next();
    }

    // Whether the flow has made a request, and the turns since then had a total cost of at most `cost` for each flow.
    [[nodiscard]] bool asked_within(const Flow& flow, uint64_t cost) const {
        Lock lock(mutex_);
        return flow.has_asked_ && (now_ <= flow.end_ || now_ - flow.end_ <= cost);
    }

    // Whether threads that have found no room wait or have the turn, and how many.
    [[nodiscard]] bool requested() const { return requests() != 0; }
    [[nodiscard]] uint32_t requests() const { return requests_.load(std::memory_order_relaxed); }

private:
    struct Waiter {
        uint64_t start = 0;
        Waiter* next = nullptr;
        bool is_called = false;
        ConditionVariable called;  // notified under the mutex, because it is destroyed when the wait ends
    };

    void call_next() POLDER_REQUIRES(mutex_) {
        Waiter** best = &first_;
        for (Waiter** each = &first_; *each; each = &(*each)->next)
            if ((*each)->start < (*best)->start)
                best = each;
        Waiter* const called = *best;
        if (!called) {
            is_held_ = false;
            return;
        }
        *best = called->next;
        if (!called->next)
            last_ = best;
        now_ = called->start;
        called->is_called = true;
        called->called.notify_one();
    }

    mutable Mutex mutex_;
    Waiter* first_ POLDER_GUARDED_BY(mutex_) = nullptr;  // a list in the order in which the threads came
    Waiter** last_ POLDER_GUARDED_BY(mutex_) = &first_;
    uint64_t now_ POLDER_GUARDED_BY(mutex_) = 0;  // the start of the request that has the turn
    bool is_held_ POLDER_GUARDED_BY(mutex_) = false;
    std::atomic<uint32_t> requests_{0};
};

}  // namespace polder::memory
