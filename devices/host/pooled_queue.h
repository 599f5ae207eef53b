// PooledQueue: a WorkerPool's view of a queue that its workers drain.
//
// The queue owns its state; the pool owns the list of queues that wait for a worker. The pool calls these functions
// with its lock held, except `run_claimed`.
#pragma once

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

private:
    friend class WorkerPool;
    bool in_ready_list_ = false;
    PooledQueue* next_ready_ = nullptr;
};

} // namespace polder::devices
