#include <base/log.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <host/engine.h>
#include <host/host_queue.h>
#include <thread>

namespace polder::devices {

class Worker {
public:
    Worker(Engine& owner, WorkerPlace where) : engine(owner), place(where), workspace(owner.local_memory()) {}

    Engine& engine;
    const WorkerPlace place;
    Parker parker;
    Workspace workspace;
    pthread_t thread{};
    Worker* next_idle = nullptr;

    static void* main(void* argument) {
        auto& me = *static_cast<Worker*>(argument);
        current = &me;
        if (me.engine.options_.enter_thread)
            me.engine.options_.enter_thread();
        me.engine.work(me);
        return nullptr;
    }

    static thread_local Worker* current;
};

thread_local Worker* Worker::current = nullptr;

namespace {

// Handlers of the application must not run on our threads; synchronous faults stay deliverable.
sigset_t signals_to_block() {
    sigset_t set;
    sigfillset(&set);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
        sigdelset(&set, fault);
    return set;
}

} // namespace

Engine::Engine(EngineOptions options) : options_(std::move(options)) {
    if (!options_.local_memory)
        options_.local_memory = &heap_local_memory();
    if (options_.places.empty())
        options_.places.emplace_back();
    CPU_ZERO(&all_places_);
    for (const WorkerPlace& place : options_.places) {
        nodes_ = std::max(nodes_, place.node + 1);
        if (place.cpu >= 0)
            CPU_SET(static_cast<size_t>(place.cpu), &all_places_);
    }
    // With one processor, spinning only keeps the awaited thread from running.
    spins_ = std::thread::hardware_concurrency() > 1 ? 300 : 0;
}

Engine::~Engine() {
    std::vector<std::unique_ptr<Worker>> workers;
    {
        Lock lock(mutex_);
        stopping_ = true;
        while (Worker* const worker = idle_worker())
            worker->parker.wake();
        workers = std::move(workers_);
    }
    for (const auto& worker : workers)
        pthread_join(worker->thread, nullptr);
}

bool Engine::is_quiet() const POLDER_NO_THREAD_SAFETY_ANALYSIS {
    size_t idle = 0;
    for (const Worker* worker = idle_; worker; worker = worker->next_idle)
        ++idle;
    return idle == workers_.size() && !ready_first_ && !open_tasks_;
}

void Engine::forget_threads() POLDER_NO_THREAD_SAFETY_ANALYSIS {
    for (std::unique_ptr<Worker>& worker : workers_) [[maybe_unused]]
        Worker* const leaked = worker.release();
    workers_.clear();
    idle_ = nullptr;
    open_tasks_ = nullptr;
    blocked_ = 0;
}

bool Engine::start() {
    Lock lock(mutex_);
    return !workers_.empty() || spawn() != nullptr;
}

bool Engine::is_worker_here() const { return Worker::current && &Worker::current->engine == this; }

Workspace& Engine::workspace_here(Workspace& of_queue) const {
    // Free: a worker that drains a second queue has not begun the first one's operation.
    return is_worker_here() ? Worker::current->workspace : of_queue;
}

bool Engine::may_execute_here() const {
    // A worker of another engine must not get stuck in this one's work.
    return Worker::current == nullptr ? options_.helping == Helping::any_thread : is_worker_here();
}

Worker* Engine::idle_worker() {
    Worker* const worker = idle_;
    if (worker)
        idle_ = worker->next_idle;
    return worker;
}

// A worker to be woken for new work; one that was just started needs no waking.
Worker* Engine::wanted_worker() {
    if (Worker* const worker = idle_worker())
        return worker;
    if (workers_.size() < options_.places.size() + blocked_)
        spawn();
    return nullptr;
}

Worker* Engine::spawn() {
    const WorkerPlace place = options_.places[workers_.size() % options_.places.size()];
    auto worker = std::make_unique<Worker>(*this, place);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    if (options_.binding == EngineOptions::Binding::to_place && place.cpu >= 0) {
        cpu_set_t only;
        CPU_ZERO(&only);
        CPU_SET(static_cast<size_t>(place.cpu), &only);
        pthread_attr_setaffinity_np(&attributes, sizeof only, &only);
    } else if (options_.binding == EngineOptions::Binding::to_all_places && CPU_COUNT(&all_places_) > 0) {
        pthread_attr_setaffinity_np(&attributes, sizeof all_places_, &all_places_);
    }
    const sigset_t blocked = signals_to_block();
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    const int error = pthread_create(&worker->thread, &attributes, Worker::main, worker.get());
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        if (!refusal_told_)
            log::line(log::Category::warning, "cannot start a worker thread: %s", std::strerror(error));
        refusal_told_ = true;
        return nullptr;
    }
    pthread_setname_np(worker->thread, options_.thread_name.c_str());
    workers_.push_back(std::move(worker));
    return workers_.back().get();
}

void Engine::schedule(HostQueue& queue, QueueState from) {
    Worker* worker = nullptr;
    {
        Lock lock(mutex_);
        if (!queue.become_scheduled(from))
            return;
        // An entry that a helping thread has made stale is still in the list and serves again.
        if (!queue.in_ready_list) {
            queue.in_ready_list = true;
            queue.next_ready = nullptr;
            (ready_last_ ? ready_last_->next_ready : ready_first_) = &queue;
            ready_last_ = &queue;
            ready_count_.fetch_add(1, std::memory_order_relaxed);
        }
        worker = wanted_worker();
    }
    if (worker)
        worker->parker.wake();
}

// Claiming under the lock lets `forget` be sure that nobody is about to claim.
HostQueue* Engine::claim_ready_queue() {
    while (HostQueue* const queue = ready_first_) {
        ready_first_ = queue->next_ready;
        if (!ready_first_)
            ready_last_ = nullptr;
        queue->in_ready_list = false;
        ready_count_.fetch_sub(1, std::memory_order_relaxed);
        if (queue->claim_scheduled())
            return queue;
    }
    return nullptr;
}

void Engine::forget(HostQueue& queue) {
    Lock lock(mutex_);
    if (!queue.in_ready_list)
        return;
    HostQueue* previous = nullptr;
    for (HostQueue* other = ready_first_; other != &queue; other = other->next_ready)
        previous = other;
    (previous ? previous->next_ready : ready_first_) = queue.next_ready;
    if (ready_last_ == &queue)
        ready_last_ = previous;
    ready_count_.fetch_sub(1, std::memory_order_relaxed);
}

ParallelTask* Engine::joinable_task() {
    for (ParallelTask* task = open_tasks_; task; task = task->next_open)
        if (task->participants() + 1 < task->threads_max() && task->has_work())
            return task;
    return nullptr;
}

void Engine::work(Worker& me) {
    for (;;) {
        HostQueue* queue = nullptr;
        ParallelTask* task = nullptr;
        {
            Lock lock(mutex_);
            if (stopping_)
                return;
            queue = claim_ready_queue();
            if (!queue) {
                task = joinable_task();
                if (task) {
                    task->join();
                } else {
                    me.next_idle = idle_;
                    idle_ = &me;
                }
            }
        }
        if (queue) {
            queue->run_claimed();
        } else if (task) {
            invite(*task);
            task->work(me.workspace, me.place.node, &ready_count_);
            task->leave();
        } else {
            me.parker.park(spins_);
        }
    }
}

// Wakes up to two more workers for `task`; they do the same, so that many are woken in few steps.
void Engine::invite(const ParallelTask& task) {
    Worker* workers[2] = {};
    {
        Lock lock(mutex_);
        for (uint32_t i = 0; i < 2; ++i)
            if (task.participants() + i + 1 < task.threads_max() && task.has_work())
                workers[i] = wanted_worker();
    }
    for (Worker* const worker : workers)
        if (worker)
            worker->parker.wake();
}

void Engine::close(ParallelTask& task) {
    {
        Lock lock(mutex_);
        ParallelTask** link = &open_tasks_;
        while (*link != &task)
            link = &(*link)->next_open;
        *link = task.next_open;
    }
    task.wait_for_participants();
}

void Engine::run(ParallelTask& task, Workspace& workspace) {
    {
        Lock lock(mutex_);
        task.next_open = open_tasks_;
        open_tasks_ = &task;
    }
    invite(task);
    task.work(workspace, Worker::current ? Worker::current->place.node : 0, nullptr);
    close(task);
}

void Engine::begin_blocking() {
    Worker* worker = nullptr;
    {
        Lock lock(mutex_);
        ++blocked_;
        if (ready_first_ || joinable_task())
            worker = wanted_worker();
    }
    if (worker)
        worker->parker.wake();
}

void Engine::end_blocking() {
    Lock lock(mutex_);
    --blocked_;
}

BlockingSection::BlockingSection() : engine_(Worker::current ? &Worker::current->engine : nullptr) {
    if (engine_)
        engine_->begin_blocking();
}

BlockingSection::~BlockingSection() {
    if (engine_)
        engine_->end_blocking();
}

} // namespace polder::devices
