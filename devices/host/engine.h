// Engine: the worker threads of one host-executed device, and what they work on: queues that are ready to
// be drained, and parallel tasks that are open for more threads.
//
// Owned by its device. Threads are started when first needed, one per compute unit at most, plus one for
// each that is blocked in a BlockingSection. Any thread may call any function, save the destructor, which
// needs idle queues and joins the workers. A process that exits with work in flight just leaves them be.
#pragma once

#include <base/fork.h>
#include <base/mutex.h>

#include <atomic>
#include <cstdint>
#include <host/parallel_task.h>
#include <host/parker.h>
#include <host/workspace.h>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <vector>

namespace polder::devices {

class HostQueue;
enum class QueueState : uint32_t;

// Who may execute the operations of an engine's queues: any thread that waits for them, or only the
// engine's workers (because only they see the device's memory).
enum class Helping : uint8_t { any_thread, workers_only };

// One compute unit: where its worker runs.
struct WorkerPlace {
    int cpu = -1;       // the OS's number; -1: anywhere
    uint32_t node = 0;  // NUMA domain, numbered from 0 within the engine
};

struct EngineOptions {
    std::string thread_name;  // at most 15 characters
    std::vector<WorkerPlace> places;
    enum class Binding : uint8_t { none, to_place, to_all_places } binding = Binding::none;
    Helping helping = Helping::any_thread;
    LocalMemory* local_memory = nullptr;  // null: the heap
    void (*enter_thread)() = nullptr;     // called first in each worker
};

class Worker;

class Engine final : private ForkParticipant {
public:
    explicit Engine(EngineOptions options);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    ~Engine();

    // Starts the first worker. False: the system refuses.
    [[nodiscard]] bool start();

    // Has `queue` drained by a worker, unless a helping thread is faster. Does nothing when its state is not
    // `from` any more.
    void schedule(HostQueue& queue, QueueState from);
    // `queue` is about to be destroyed.
    void forget(HostQueue& queue);
    // Executes all of `task`, together with other workers as far as they are free.
    void run(ParallelTask& task, Workspace& workspace);

    [[nodiscard]] uint32_t width() const { return static_cast<uint32_t>(options_.places.size()); }
    [[nodiscard]] uint32_t nodes() const { return nodes_; }
    [[nodiscard]] LocalMemory& local_memory() const { return *options_.local_memory; }
    // Queues that wait for a free worker.
    [[nodiscard]] const std::atomic<uint32_t>& backlog() const { return ready_count_; }
    // True when the calling thread may execute this engine's operations.
    [[nodiscard]] bool may_execute_here() const;
    [[nodiscard]] bool is_worker_here() const;
    // The memory the calling thread runs work-groups in: a worker's own, else `of_queue`.
    [[nodiscard]] Workspace& workspace_here(Workspace& of_queue) const;
    // Checks between spinning and sleeping, for threads that wait for this engine's work.
    [[nodiscard]] uint32_t spins() const { return spins_; }

    static constexpr size_t stack_bytes = size_t{16} << 20;

private:
    friend class BlockingSection;
    friend class Worker;

    void lock_for_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
    void unlock_after_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
    [[nodiscard]] bool is_quiet() const override;
    void forget_threads() override;

    void work(Worker& me);
    Worker* idle_worker() POLDER_REQUIRES(mutex_);
    Worker* wanted_worker() POLDER_REQUIRES(mutex_);
    Worker* spawn() POLDER_REQUIRES(mutex_);
    HostQueue* claim_ready_queue() POLDER_REQUIRES(mutex_);
    ParallelTask* joinable_task() POLDER_REQUIRES(mutex_);
    void begin_blocking();
    void end_blocking();
    void invite(const ParallelTask& task);
    void close(ParallelTask& task);

    EngineOptions options_;
    uint32_t nodes_ = 1;
    uint32_t spins_ = 0;
    cpu_set_t all_places_;

    Mutex mutex_;
    bool stopping_ POLDER_GUARDED_BY(mutex_) = false;
    bool refusal_told_ POLDER_GUARDED_BY(mutex_) = false;
    uint32_t blocked_ POLDER_GUARDED_BY(mutex_) = 0;
    HostQueue* ready_first_ POLDER_GUARDED_BY(mutex_) = nullptr;
    HostQueue* ready_last_ POLDER_GUARDED_BY(mutex_) = nullptr;
    ParallelTask* open_tasks_ POLDER_GUARDED_BY(mutex_) = nullptr;
    Worker* idle_ POLDER_GUARDED_BY(mutex_) = nullptr;
    std::vector<std::unique_ptr<Worker>> workers_ POLDER_GUARDED_BY(mutex_);
    std::atomic<uint32_t> ready_count_{0};
    ForkMembership fork_membership_{*this};
};

// While it lives, the calling worker counts as absent, so that another can take its place. Does nothing
// on threads that are no workers.
class BlockingSection {
public:
    BlockingSection();
    BlockingSection(const BlockingSection&) = delete;
    BlockingSection& operator=(const BlockingSection&) = delete;
    ~BlockingSection();

private:
    Engine* engine_;
};

} // namespace polder::devices
