// FairTurns: one thread at a time, in shares that are equal among flows.
//
// Each request names its flow and a cost, here the context and the bytes that it misses in a full memory. Flows whose requests wait get turns of the same total
// cost, however many threads of each wait and however large the requests are. Within a flow, first come first served.
//
// Algorithm: start-time fair queueing (P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queueing", SIGCOMM 1996). A request's start is the end
// of its flow's last one, or the start of what is served now if that is later: a flow that asked for nothing for a while has saved up
// nothing. The request with the earliest start is next. A flow's turn comes after at most one request more of each other flow than its share.
//
// Others go past the turn unless it is requested. A request that has not looked for room yet, but waits because others do, must not make later ones wait:
// two threads that allocate in a loop and met once would take turns for ever, with a switch of threads for each allocation. So it enters
// quietly, and insists when it finds no room either (as in memory/turns.h).
//
// Any thread may call any function; a thread leaves only after it has entered. Entering and leaving need no memory; leaving looks at all
// waiting threads, and wakes one.
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
        uint64_t end_ = 0;  // of its last request, in costs
        bool has_asked_ = false;
    };

    // For a request. If it has tried, others see it in requested() until it leaves; otherwise it leaves quietly, or insists.
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
    // It has the turn quietly, and found no room.
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

    // Whether the other flows have had turns of at most `cost` since the flow's last request.
    [[nodiscard]] bool asked_within(const Flow& flow, uint64_t cost) const {
        Lock lock(mutex_);
        return flow.has_asked_ && (now_ <= flow.end_ || now_ - flow.end_ <= cost);
    }

    // Whether a thread that has found no room waits or has the turn, and how many do.
    [[nodiscard]] bool requested() const { return requests() != 0; }
    [[nodiscard]] uint32_t requests() const { return requests_.load(std::memory_order_relaxed); }

private:
    struct Waiter {
        uint64_t start = 0;
        Waiter* next = nullptr;
        bool is_called = false;
        ConditionVariable called;  // notified under the mutex, because it ends with the wait
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
    Waiter* first_ POLDER_GUARDED_BY(mutex_) = nullptr;  // in the order in which they came
    Waiter** last_ POLDER_GUARDED_BY(mutex_) = &first_;
    uint64_t now_ POLDER_GUARDED_BY(mutex_) = 0;  // the start of the request that has the turn
    bool is_held_ POLDER_GUARDED_BY(mutex_) = false;
    std::atomic<uint32_t> requests_{0};
};

}  // namespace polder::memory
