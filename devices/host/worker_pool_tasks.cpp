// Parallel tasks of a pool: which need more threads, who joins them, and who is woken for them. What a worker does with its time is worker_pool.cpp.
#include <algorithm>
#include <host/short_lock.h>
#include <host/worker.h>
#include <utility>

namespace polder::devices {

// How many more workers the task needs, without threads that wait for its queue.
uint32_t WorkerPool::workers_wanted_by(const ParallelTask& task) {
    uint32_t present = task.participants() + 1;
    if (task.queue() != nullptr && task.stack_bytes() < PooledQueue::HelperHere::stack_bytes)
        present += task.queue()->helpers_.load(std::memory_order_relaxed);
    return present < task.threads_max() && task.has_work() ? task.threads_max() - present : 0;
}

ParallelTask* WorkerPool::joinable_task() {
    for (ParallelTask* task = open_tasks_; task; task = task->next_open)
        if (workers_wanted_by(*task) > 0)
            return task;
    return nullptr;
}

uint32_t WorkerPool::wanted_participants() const {
    uint32_t wanted = 0;
    for (const ParallelTask* task = open_tasks_; task; task = task->next_open)
        wanted += workers_wanted_by(*task);
    return wanted;
}

// Wakes up to two more workers for the open tasks; they do the same, so that many are woken in few steps.
void WorkerPool::invite() {
    Worker* workers[2] = {};
    {
        ShortLock lock(mutex_);
        const uint32_t wanted = wanted_participants();
        for (Worker*& worker : workers)
            if (coming_ < wanted)
                worker = wanted_worker();
    }
    for (Worker* const worker : workers)
        if (worker)
            worker->parker.wake();
}

ParallelTask* WorkerPool::joinable_task_of(const PooledQueue& queue, uint64_t stack_left) {
    for (ParallelTask* task = open_tasks_; task; task = task->next_open)
        if (task->queue() == &queue && task->participants() + 1 < task->threads_max() && task->has_work() &&
            task->stack_bytes() < stack_left)
            return task;
    return nullptr;
}

void WorkerPool::help_task_of(PooledQueue::HelperHere& here) {
    PooledQueue& queue = here.queue;
    ParallelTask* task = nullptr;
    std::unique_ptr<Workspace> workspace;
    {
        ShortLock lock(mutex_);
        // A task of a later operation may last much longer.
        if (queue.has_completed(here.value))
            return;
        task = joinable_task_of(queue, here.stack_left);
        if (task)
            task->join();
        here.leave();
        if (!task) {
            queue.wants_helpers_.store(false, std::memory_order_relaxed);
            return;
        }
        if (!helpers_workspaces_.empty()) {
            workspace = std::move(helpers_workspaces_.back());
            helpers_workspaces_.pop_back();
        }
    }
    if (!workspace)
        workspace = std::make_unique<Workspace>(local_memory());
    const bool cannot_help = !task->work(*workspace, place_of(sched_getcpu()), nullptr) && task->has_work();
    task->leave();
    ShortLock lock(mutex_);
    helpers_workspaces_.push_back(std::move(workspace));
    if (cannot_help)  // no memory for the workspace
        queue.wants_helpers_.store(false, std::memory_order_relaxed);
}

void WorkerPool::close(ParallelTask& task) {
    {
        ShortLock lock(mutex_);
        if (task.queue() != nullptr)
            task.queue()->wants_helpers_.store(false, std::memory_order_relaxed);
        ParallelTask** link = &open_tasks_;
        while (*link != &task)
            link = &(*link)->next_open;
        *link = task.next_open;
    }
    task.wait_for_participants();
}

ParallelTask::Place WorkerPool::place_of(int cpu) const {
    const auto number = static_cast<uint32_t>(std::max(cpu, 0));
    return {number < ranks_.size() ? ranks_[number] : number % width(), width()};
}

void WorkerPool::run(ParallelTask& task, Workspace& workspace) {
    {
        ShortLock lock(mutex_);
        task.next_open = open_tasks_;
        open_tasks_ = &task;
        if (task.queue() != nullptr)
            task.queue()->wants_helpers_.store(true, std::memory_order_relaxed);
    }
    invite();
    task.work(workspace, place_of(sched_getcpu()), nullptr);
    close(task);
}

}  // namespace polder::devices
