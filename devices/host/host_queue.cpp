// HostQueue: creation and destruction, promises, and waiting threads. See also host_queue_submit.cpp and host_queue_drain.cpp.
#include <host/host_queue.h>
#include <host/parker.h>
#include <thread>

namespace polder::devices {

HostQueue::HostQueue(WorkerPool& pool, const Options& options)
    : pool_(pool), options_(options), workspace_(pool.local_memory()) {
    resumption_.queue = this;
    resumption_.reached = [](driver::FenceWaiter& waiter) {
        HostQueue& queue = *static_cast<Resumption&>(waiter).queue;
        // Only workers park queues, so there is a worker.
        static_cast<void>(queue.pool_.schedule(queue, QueueState::parked));
    };
}

HostQueue::~HostQueue() {
    wait(submitted_.load(std::memory_order_relaxed));
    // The thread that executed the last operation may still be about to release the claim.
    while (!claim_.is_idle())
        std::this_thread::yield();
    pool_.forget(*this);
}

void HostQueue::flush() { promise(submitted_.load(std::memory_order_acquire), 0); }

void HostQueue::promise(uint64_t value, uint32_t depth) {
    if (completed() >= value)
        return;
    const bool is_somebodys =
        claim_.promise(value) ? pool_.schedule(*this, QueueState::idle) : !pool_.workers_refused();
    if (is_somebodys)
        return;
    // There is no worker. Executes nothing beyond `value`: later operations may wait for the one that this thread is executing.
    help(value, depth);
    if (depth == 0)
        WorkerPool::drain_left_behind();
}

void HostQueue::run_claimed() {
    for (;;) {
        switch (drain(nobody, 0)) {
        case Outcome::parked: return;
        case Outcome::interrupted:
            if (pool_.schedule(*this, QueueState::running) || !claim_.claim_scheduled())
                return;
            break;
        case Outcome::drained:
            if (claim_.become_idle(executed_))
                return;
            break;
        }
    }
}

void HostQueue::help(uint64_t value, uint32_t depth) {
    if (!claim_.claim())
        return;
    if (drain(value, depth) == Outcome::parked)
        return;
    if (!claim_.become_idle(executed_) && !pool_.schedule(*this, QueueState::running))
        pool_.leave_behind();
}

void HostQueue::wait(uint64_t value) {
    if (completed() >= value)
        return;
    if (pool_.may_execute_here()) {
        help(value, 0);
        WorkerPool::drain_left_behind();
        if (completed() >= value)
            return;
    }
    promise(value, 0);
    wait_and_help(value);
}

namespace {
struct SleepingThread : driver::FenceWaiter {
    Parker parker;
};
}  // namespace

void HostQueue::wait_and_help(uint64_t value) {
    if (!pool_.may_spin())
        return sleep_until(value);
    if (!pool_.may_execute_here() || WorkerPool::is_any_worker_here())
        return spinning_.wait([&] { return completed() >= value; }, [&] { sleep_until(value); });
    while (completed() < value) {
        HelperHere here(*this, value, stack_left());
        spinning_.wait([&] { return completed() >= value || wants_helpers(); },
                       [&] {
                           here.leave();
                           if (!wants_helpers())
                               sleep_until(value);
                       });
        if (wants_helpers())
            pool_.help_task_of(here);
    }
}

void HostQueue::sleep_until(uint64_t value) {
    SleepingThread thread;
    thread.value = value;
    thread.reached = [](driver::FenceWaiter& waiter) { static_cast<SleepingThread&>(waiter).parker.wake(); };
    if (!add_waiter(thread))
        return;
    const BlockingSection section;
    thread.parker.park();
}

}  // namespace polder::devices
