// WorkerPool: the worker threads of one host-executed device. They drain queues that are ready, and take part in
// parallel tasks that are open.
//
// Owned by its device. A thread is started when it is first needed: at most one for each compute unit, and one more for
// each that is inside a BlockingSection. Any thread may call any function, except the destructor, which needs idle
// queues and joins the workers. A process may exit with work in flight.
#pragma once

#include <base/fork.h>
#include <base/mutex.h>

#include <atomic>
#include <cstdint>
#include <host/parallel_task.h>
#include <host/parker.h>
#include <host/pooled_queue.h>
#include <host/workspace.h>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <vector>

namespace polder::devices {

// Who may execute the operations of a pool's queues: any thread that waits for them, or only the
// pool's workers (because only they see the device's memory).
enum class Helping : uint8_t { any_thread, workers_only };

// The place where the worker of one compute unit runs.
struct WorkerPlace {
    int cpu = -1;  // the OS's number; -1: anywhere
    uint32_t node = 0;  // NUMA domain, numbered from 0 within the pool
};

struct WorkerPoolOptions {
    std::string thread_name;  // at most 15 characters
    std::vector<WorkerPlace> places;
    enum class Binding : uint8_t { none, to_place, to_all_places } binding = Binding::none;
    Helping helping = Helping::any_thread;
    LocalMemory* local_memory = nullptr;  // null: the heap
    void (*enter_thread)() = nullptr;  // each worker calls it first; may be null
};

class Worker;

class WorkerPool final : private ForkParticipant {
public:
    explicit WorkerPool(WorkerPoolOptions options);
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;
    ~WorkerPool();

    // Starts the first worker. False: the system refuses.
    [[nodiscard]] bool start();

    // Appends `queue` to the list of queues that workers drain; a helping thread may drain it before. Does nothing when the
    // queue's state is not `from` any more. When the system refuses to start a first worker, the workers of other pools
    // drain the queue. False: there are no such workers, so the caller must drain the queue itself or wait until another thread does.
    [[nodiscard]] bool schedule(PooledQueue& queue, QueueState from);
    // True while no pool has a worker that could serve this one, because the system refused to start one.
    [[nodiscard]] bool workers_refused() const { return workers_refused_.load(std::memory_order_acquire); }
    // Called by a thread that drains queues recursively and stops at a queue of this pool with promised operations left, when
    // no worker can be started. `drain_left_behind` drains that queue when the thread executes no other queue.
    void leave_behind();
    static void drain_left_behind() {
        if (left_behind_here_) [[unlikely]]
            drain_left_behind_pools();
    }
    // Removes a queue that is about to be destroyed.
    void forget(PooledQueue& queue);
    // Executes all of `task`, together with other workers as far as they are free.
    void run(ParallelTask& task, Workspace& workspace);
    // Takes part in a parallel task of the queue, if one is open and the thread still waits. The calling thread, which is no worker, leaves `here` when it has
    // joined the task, so that no worker joins in its place.
    void help_task_of(PooledQueue::HelperHere& here);
    // Where a thread that runs on this processor begins in parallel tasks.
    [[nodiscard]] ParallelTask::Place place_of(int cpu) const;

    [[nodiscard]] uint32_t width() const { return static_cast<uint32_t>(options_.places.size()); }
    [[nodiscard]] LocalMemory& local_memory() const { return *options_.local_memory; }
    // The number of queues that wait for a free worker.
    [[nodiscard]] const std::atomic<uint32_t>& backlog() const { return ready_count_; }
    // True when the calling thread may execute this pool's operations.
    [[nodiscard]] bool may_execute_here() const;
    [[nodiscard]] bool is_worker_here() const;
    // True on workers of any pool: they must not sleep while they drain a queue.
    [[nodiscard]] static bool is_any_worker_here();
    // The workspace in which the calling thread executes work-groups: on a worker its own, otherwise `of_queue`.
    [[nodiscard]] Workspace& workspace_here(Workspace& of_queue) const;
    // Threads that wait for this pool's work may spin: they do not keep the awaited thread from running.
    [[nodiscard]] bool may_spin() const { return may_spin_; }

    static constexpr size_t stack_bytes = size_t{16} << 20;
    // Of this, a work-group function may use so much; the executor itself needs the rest.
    static constexpr size_t kernel_stack_bytes = stack_bytes - (size_t{256} << 10);

private:
    friend class BlockingSection;
    friend class Worker;

    void lock_for_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
    void unlock_after_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
    [[nodiscard]] bool is_quiet() const override;
    void forget_threads() override;

    void work(Worker& me);
    [[nodiscard]] PooledQueue* claim_stranded_queue();
    [[nodiscard]] bool wake_idle_worker();
    void stop_idling(Worker& me) POLDER_REQUIRES(mutex_);
    static bool ask_other_pools();
    Worker* idle_worker() POLDER_REQUIRES(mutex_);
    Worker* wanted_worker() POLDER_REQUIRES(mutex_);
    Worker* spawn() POLDER_REQUIRES(mutex_);
    PooledQueue* claim_ready_queue() POLDER_REQUIRES(mutex_);
    ParallelTask* joinable_task() POLDER_REQUIRES(mutex_);
    ParallelTask* joinable_task_of(const PooledQueue& queue, uint64_t stack_left) POLDER_REQUIRES(mutex_);
    static void drain_left_behind_pools();
    void begin_blocking();
    void end_blocking();
    static uint32_t workers_wanted_by(const ParallelTask& task);
    [[nodiscard]] uint32_t wanted_participants() const POLDER_REQUIRES(mutex_);
    void invite();
    void close(ParallelTask& task);

    // Pools with queues that the calling thread has left behind, in a list.
    [[gnu::tls_model("initial-exec")]] static constinit thread_local WorkerPool* left_behind_here_;

    WorkerPoolOptions options_;
    std::vector<uint32_t> ranks_;  // by the OS's number of a processor; those of a NUMA node are neighbours
    bool may_spin_ = false;
    cpu_set_t all_places_;

    // Written by workers and submitting threads: on cache lines apart from what every launch reads.
    alignas(64) Mutex mutex_;
    bool stopping_ POLDER_GUARDED_BY(mutex_) = false;
    bool refusal_reported_ POLDER_GUARDED_BY(mutex_) = false;
    uint32_t blocked_ POLDER_GUARDED_BY(mutex_) = 0;
    uint32_t coming_ POLDER_GUARDED_BY(mutex_) =
        0;  // the number of workers that were woken or started and have not looked for work since
    PooledQueue* ready_first_ POLDER_GUARDED_BY(mutex_) = nullptr;
    PooledQueue* ready_last_ POLDER_GUARDED_BY(mutex_) = nullptr;
    ParallelTask* open_tasks_ POLDER_GUARDED_BY(mutex_) = nullptr;
    Worker* idle_ POLDER_GUARDED_BY(mutex_) = nullptr;
    std::vector<std::unique_ptr<Worker>> workers_ POLDER_GUARDED_BY(mutex_);
    std::vector<std::unique_ptr<Workspace>> helpers_workspaces_ POLDER_GUARDED_BY(mutex_);  // those that no thread uses
    alignas(64) std::atomic<uint32_t> ready_count_{0};
    std::atomic<bool> is_stranded_{false};  // the pool has queues that need a worker, and no worker can be started
    std::atomic<bool> is_left_behind_{false};
    WorkerPool* next_left_behind_ = nullptr;  // of the thread that set is_left_behind_
    std::atomic<bool> workers_refused_{false};
    static inline constinit std::atomic<uint32_t> stranded_pools_{0};
    ForkMembership fork_membership_{*this};
};

// While this object exists, the calling worker does not count, so that another worker can be started. Does nothing
// on threads that are not workers.
class BlockingSection {
public:
    BlockingSection();
    BlockingSection(const BlockingSection&) = delete;
    BlockingSection& operator=(const BlockingSection&) = delete;
    ~BlockingSection();

private:
    WorkerPool* pool_;
};

}  // namespace polder::devices
