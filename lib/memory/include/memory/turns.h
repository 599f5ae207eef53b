// Turns: one thread at a time, first come first served.
//
// A mutex guarantees no order, so a thread that locks it repeatedly can keep others waiting for long. Here each
// thread gets a number and waits until this number is next. `requested` reports whether a thread that found no room waits or has the turn.
//
// Others go past the turn unless it is requested. A request that has not tried yet, but waits because others do, must not make later ones wait: two
// threads that allocate in a loop would wait for each other in turns for ever, with a switch of threads for each allocation. So it enters quietly, and
// insists when it finds no room either.
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
    // For a request that found no room: others see it in requested() until it leaves.
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

    // Likewise for one that has entered quietly.
    void insist() { requests_.fetch_add(1, std::memory_order_relaxed); }

    // For housekeeping, which keeps requests from their turn but is none, and for requests that have not tried yet.
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
    uint64_t next_ POLDER_GUARDED_BY(mutex_) = 0;  // number of the next thread to come
    uint64_t called_ POLDER_GUARDED_BY(mutex_) = 0;  // number whose turn it is
    std::atomic<uint32_t> requests_{0};
};

}  // namespace polder::memory
