// PooledQueue: a WorkerPool's view of a queue that its workers drain.
//
// The queue owns its state; the pool owns the list of queues that wait for a worker. The pool calls these functions
// with its lock held, except `run_claimed`.
#pragma once

#include <atomic>
#include <cstdint>

namespace polder::devices {

// idle -> scheduled -> running -> idle, running -> parked -> scheduled; idle -> running by a helping thread.
// `running_more`: more work was promised while the queue was running; look again before it becomes idle.
enum class QueueState : uint32_t { idle, scheduled, running, running_more, parked };

class PooledQueue {
public:
    virtual ~PooledQueue() = default;
    // Changes the state from `from` to scheduled. False when the state is not `from`.
    [[nodiscard]] virtual bool become_scheduled(QueueState from) = 0;
    // Changes the state from scheduled to running. False when another thread has claimed the queue.
    [[nodiscard]] virtual bool claim_scheduled() = 0;
    // Drains the claimed queue on the calling thread.
    virtual void run_claimed() = 0;
    // Whether the operation of this value is complete. Not before it is may a parallel task of a later operation be open.
    [[nodiscard]] virtual bool has_completed(uint64_t value) const = 0;

    // A parallel task of the queue is open, and threads that wait for the queue may take part (WorkerPool::help_task_of).
    [[nodiscard]] bool wants_helpers() const { return wants_helpers_.load(std::memory_order_relaxed); }
    // While it exists, the calling thread, which waits for the operation `value`, spins until such a task is open. It counts as a participant, so that no worker is woken in its place, if it
    // has enough stack left for most kernels.
    class HelperHere {
    public:
        HelperHere(PooledQueue& awaited, uint64_t awaited_value, uint64_t bytes)
            : queue(awaited), value(awaited_value), stack_left(bytes), is_counted_(bytes > stack_bytes) {
            if (is_counted_)
                queue.helpers_.fetch_add(1, std::memory_order_relaxed);
        }
        HelperHere(const HelperHere&) = delete;
        HelperHere& operator=(const HelperHere&) = delete;
        ~HelperHere() { leave(); }
        void leave() {
            if (is_counted_)
                queue.helpers_.fetch_sub(1, std::memory_order_relaxed);
            is_counted_ = false;
        }
        static constexpr uint64_t stack_bytes = uint64_t{1} << 20;
        PooledQueue& queue;
        const uint64_t value, stack_left;

    private:
        bool is_counted_;
    };

private:
    friend class WorkerPool;
    std::atomic<bool> wants_helpers_{false};  // written with the pool's lock
    std::atomic<uint32_t> helpers_{0};
    bool in_ready_list_ = false;
    PooledQueue* next_ready_ = nullptr;
};

}  // namespace polder::devices
