// Turns: one thread at a time, first come first served.
//
// A mutex guarantees no order, so a thread that locks it repeatedly can keep others waiting for long. Here each
// thread gets a number and waits until this number is next. `requested` reports whether a thread that found no room waits or has the turn.
//
// A request needs the turn only while requested() is true, or when it finds no room. A request that waits only because requested() is true has not
// looked for room. It must not make later requests wait, or two threads that allocate in a loop would take turns for ever, with a thread switch for
// each allocation. So it enters "quietly", without being counted, and calls `insist` when it finds no room.
//
// Any thread may call any function; a thread leaves only after it has entered.
#pragma once

#include <base/mutex.h>

#include <atomic>
#include <cstdint>

namespace polder::memory {

enum class Tried : bool { no, yes };  // whether a request has looked for room already

class Turns {
public:
    // For a request that found no room: requested() is true until it leaves.
    void enter() {
        requests_.fetch_add(1, std::memory_order_relaxed);
        Lock lock(mutex_);
        const uint64_t number = next_++;
        while (called_ != number)
            changed_.wait(mutex_);
    }
    void leave() {
        requests_.fetch_sub(1, std::memory_order_relaxed);
        call_next();
    }
    // For a request that must not wait; false when another thread has the turn.
    [[nodiscard]] bool try_enter() {
        if (!try_enter_quietly())
            return false;
        requests_.fetch_add(1, std::memory_order_relaxed);
        return true;
    }

    // For a request that has entered quietly and found no room: from now on it is counted, and must call leave().
    void insist() { requests_.fetch_add(1, std::memory_order_relaxed); }

    // For requests that have not looked for room, and for housekeeping, which must exclude requests but is no request itself.
    void enter_quietly() {
        Lock lock(mutex_);
        const uint64_t number = next_++;
        while (called_ != number)
            changed_.wait(mutex_);
    }
    [[nodiscard]] bool try_enter_quietly() {
        Lock lock(mutex_);
        if (called_ != next_)
            return false;
        ++next_;
        return true;
    }
    void leave_quietly() { call_next(); }

    [[nodiscard]] bool requested() const { return requests_.load(std::memory_order_relaxed) != 0; }

private:
    void call_next() {
        {
            Lock lock(mutex_);
            ++called_;
        }
        changed_.notify_all();
    }

    Mutex mutex_;
    ConditionVariable changed_;
    uint64_t next_ POLDER_GUARDED_BY(mutex_) = 0;  // the number that the next thread gets
    uint64_t called_ POLDER_GUARDED_BY(mutex_) = 0;  // the number of the thread that has the turn
    std::atomic<uint32_t> requests_{0};
};

}  // namespace polder::memory
