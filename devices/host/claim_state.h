// ClaimState: which thread executes a queue, and up to which operation it must be executed.
//
// One thread at a time holds the claim. A *promise* of value v means: operations up to v are executed without another
// call from outside. The thread that releases the claim and the thread that promises cannot miss each other: the first
// reads the promise before it makes the queue idle, the second writes the promise before it reads the state.
// Any thread may call any function; `become_idle`, `park` and `unpark` need the claim.
#pragma once

#include <atomic>
#include <host/pooled_queue.h>

namespace polder::devices {

class ClaimState {
public:
    using State = QueueState;

    // Takes the claim of an idle or scheduled queue.
    [[nodiscard]] bool claim() { return change(State::idle, State::running) || claim_scheduled(); }
    [[nodiscard]] bool claim_scheduled() { return change(State::scheduled, State::running); }

    // For WorkerPool::schedule.
    [[nodiscard]] bool become_scheduled(State from) {
        // When the holder of the claim schedules the queue, another thread may have changed `running` to `running_more`.
        return change(from, State::scheduled) ||
               (from == State::running && change(State::running_more, State::scheduled));
    }

    // True when no thread holds the claim: the caller must schedule the queue.
    [[nodiscard]] bool promise(uint64_t value) {
        uint64_t before = promised_.load();
        while (before < value && !promised_.compare_exchange_weak(before, value)) {
        }
        State state = state_.load();
        while (state == State::running && !state_.compare_exchange_weak(state, State::running_more)) {
        }
        return state == State::idle;
    }

    // Releases the claim and returns true, after which another thread may destroy the queue. Returns false and keeps the
    // claim when operations after `executed` are promised.
    [[nodiscard]] bool become_idle(uint64_t executed) {
        for (;;) {
            if (promised_.load() > executed)
                return false;
            if (change(State::running, State::idle))
                return true;
            state_.store(State::running);
        }
    }

    // Leaves the claim to the thread that will resume the queue. The calling thread does not have it any more.
    void park() { state_.store(State::parked); }
    // Undoes `park`, when no thread was asked to resume the queue.
    void unpark() { state_.store(State::running); }

    [[nodiscard]] bool is_idle() const { return state_.load(std::memory_order_acquire) == State::idle; }
    [[nodiscard]] bool is_scheduled() const { return state_.load(std::memory_order_acquire) == State::scheduled; }

private:
    bool change(State from, State to) { return state_.compare_exchange_strong(from, to); }

    std::atomic<State> state_{State::idle};
    std::atomic<uint64_t> promised_{0};
};

}  // namespace polder::devices
