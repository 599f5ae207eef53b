// A worker repeats: it claims a ready queue and executes its operations; otherwise it joins a parallel task that needs threads; otherwise it
// executes a queue of a pool without workers (a stranded queue); otherwise it sleeps. New work wakes one idle worker, or starts a thread
// when there are fewer than the limit.
#include <base/log.h>
#include <base/service_thread.h>

#include <algorithm>
#include <cstring>
#include <host/fault_report.h>
#include <host/pool_registry.h>
#include <host/processors.h>
#include <host/short_lock.h>
#include <host/worker.h>
#include <thread>
#include <utility>

namespace polder::devices {

[[gnu::tls_model("initial-exec")]] constinit thread_local Worker* Worker::current = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local WorkerPool* WorkerPool::left_behind_here_ = nullptr;

namespace {

std::vector<uint32_t> ranks_of(std::vector<WorkerPlace> places) {
    std::ranges::sort(places, {}, [](const WorkerPlace& place) { return std::pair(place.node, place.cpu); });
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < places.size(); ++rank)
        if (const int cpu = places[rank].cpu; cpu >= 0) {
            const auto number = static_cast<size_t>(cpu);
            if (number >= ranks.size())
                ranks.resize(number + 1);
            ranks[number] = rank;
        }
    return ranks;
}

}  // namespace

WorkerPool::WorkerPool(WorkerPoolOptions options) : options_(std::move(options)) {
    if (!options_.local_memory)
        options_.local_memory = &heap_local_memory();
    if (options_.places.empty())
        options_.places.emplace_back();
    CPU_ZERO(&all_places_);
    for (const WorkerPlace& place : options_.places)
        if (place.cpu >= 0)
            CPU_SET(static_cast<size_t>(place.cpu), &all_places_);
    ranks_ = ranks_of(options_.places);
    // With one processor, a spinning thread would only keep the awaited thread from running.
    may_spin_ = allowed_processors().size() > 1;
    PoolRegistry::add(*this);
    fault_report::install_when_debugging();
}

WorkerPool::~WorkerPool() {
    PoolRegistry::remove(*this);
    if (is_stranded_.load())
        stranded_pools_.fetch_sub(1);
    std::vector<std::unique_ptr<Worker>> workers;
    {
        ShortLock lock(mutex_);
        stopping_ = true;
        while (Worker* const worker = idle_worker())
            worker->parker.wake();
        workers = std::move(workers_);
    }
    for (const auto& worker : workers)
        pthread_join(worker->thread, nullptr);
}

bool WorkerPool::is_quiet() const POLDER_NO_THREAD_SAFETY_ANALYSIS {
    size_t idle = 0;
    for (const Worker* worker = idle_; worker; worker = worker->next_idle)
        ++idle;
    return idle == workers_.size() && !ready_first_ && !open_tasks_;
}

void WorkerPool::forget_threads() POLDER_NO_THREAD_SAFETY_ANALYSIS {
    for (std::unique_ptr<Worker>& worker : workers_) [[maybe_unused]]
        Worker* const leaked = worker.release();
    workers_.clear();
    idle_ = nullptr;
    open_tasks_ = nullptr;
    blocked_ = 0;
    coming_ = 0;
}

bool WorkerPool::start() {
    ShortLock lock(mutex_);
    return !workers_.empty() || spawn() != nullptr;
}

bool WorkerPool::is_any_worker_here() { return Worker::current != nullptr; }

bool WorkerPool::is_worker_here() const { return Worker::current && &Worker::current->pool == this; }

Workspace& WorkerPool::workspace_here(Workspace& of_queue) const {
    // Free: a worker that drains a second queue has not begun the first one's operation.
    return is_worker_here() ? Worker::current->workspace : of_queue;
}

bool WorkerPool::may_execute_here() const {
    // A worker of another pool must not block on this pool's work.
    return Worker::current == nullptr ? options_.helping == Helping::any_thread : is_worker_here();
}

Worker* WorkerPool::idle_worker() {
    Worker* const worker = idle_;
    if (worker) {
        idle_ = worker->next_idle;
        worker->is_in_idle_list = false;
        worker->is_coming = true;
        ++coming_;
    }
    return worker;
}

// A worker to be woken for new work; one that was just started needs no waking.
Worker* WorkerPool::wanted_worker() {
    if (Worker* const worker = idle_worker())
        return worker;
    if (workers_.size() < options_.places.size() + blocked_)
        spawn();
    return nullptr;
}

Worker* WorkerPool::spawn() {
    const WorkerPlace place = options_.places[workers_.size() % options_.places.size()];
    auto worker = std::make_unique<Worker>(*this, place);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    if (options_.binding == WorkerPoolOptions::Binding::to_place && place.cpu >= 0) {
        cpu_set_t only;
        CPU_ZERO(&only);
        CPU_SET(static_cast<size_t>(place.cpu), &only);
        pthread_attr_setaffinity_np(&attributes, sizeof only, &only);
    } else if (options_.binding == WorkerPoolOptions::Binding::to_all_places && CPU_COUNT(&all_places_) > 0) {
        pthread_attr_setaffinity_np(&attributes, sizeof all_places_, &all_places_);
    }
    const int error = [&] {
        const SignalsBlocked blocked;
        return pthread_create(&worker->thread, &attributes, Worker::main, worker.get());
    }();
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        if (!refusal_reported_)
            log::line(log::Category::warning, "cannot start a worker thread: %s", std::strerror(error));
        refusal_reported_ = true;
        if (workers_.empty() && !is_stranded_.exchange(true))
            stranded_pools_.fetch_add(1);
        return nullptr;
    }
    pthread_setname_np(worker->thread, options_.thread_name.c_str());
    workers_.push_back(std::move(worker));
    ++coming_;
    workers_refused_.store(false, std::memory_order_release);
    if (is_stranded_.exchange(false))
        stranded_pools_.fetch_sub(1);
    return workers_.back().get();
}

bool WorkerPool::schedule(PooledQueue& queue, QueueState from) {
    Worker* worker = nullptr;
    bool has_workers = false;
    {
        ShortLock lock(mutex_);
        if (!queue.become_scheduled(from))
            return true;
        // After a waiting thread has executed the queue, its old entry may still be in the list; then it is used again.
        if (!queue.in_ready_list_) {
            queue.in_ready_list_ = true;
            queue.next_ready_ = nullptr;
            (ready_last_ ? ready_last_->next_ready_ : ready_first_) = &queue;
            ready_last_ = &queue;
            ready_count_.fetch_add(1, std::memory_order_relaxed);
        }
        worker = wanted_worker();
        has_workers = !workers_.empty();
    }
    if (worker)
        worker->parker.wake();
    if (has_workers)
        return true;
    const bool is_served = ask_other_pools();
    workers_refused_.store(!is_served, std::memory_order_release);
    return is_served;
}

// --- serving pools without workers ---

// Wakes an idle worker of another pool, if any; busy workers search for stranded queues before they sleep. False: no pool has workers.
bool WorkerPool::ask_other_pools() {
    bool any = false;
    const bool is_awake = PoolRegistry::find([&any](WorkerPool& pool) {
        {
            ShortLock lock(pool.mutex_);
            if (pool.workers_.empty())
                return false;
        }
        any = true;
        return pool.wake_idle_worker();
    });
    return is_awake || any;
}

bool WorkerPool::wake_idle_worker() {
    Worker* worker = nullptr;
    {
        ShortLock lock(mutex_);
        worker = idle_worker();
    }
    if (worker)
        worker->parker.wake();
    return worker != nullptr;
}

PooledQueue* WorkerPool::claim_stranded_queue() {
    PooledQueue* queue = nullptr;
    if (stranded_pools_.load() == 0) [[likely]]
        return nullptr;
    static_cast<void>(PoolRegistry::find([&queue, this](WorkerPool& pool) {
        if (&pool == this || !pool.is_stranded_.load())
            return false;
        ShortLock lock(pool.mutex_);
        queue = pool.claim_ready_queue();
        return queue != nullptr;
    }));
    return queue;
}

// `me` looks for work now. Removes it from the list of idle workers. It is not in the list when another thread is about to wake it. That wake may come late,
// when `me` has executed a stranded queue and is in the list again; it then ends the next sleep, after which `me` is removed here.
void WorkerPool::stop_idling(Worker& me) {
    if (me.is_coming)
        --coming_;
    me.is_coming = false;
    if (!me.is_in_idle_list)
        return;
    me.is_in_idle_list = false;
    for (Worker** link = &idle_; *link; link = &(*link)->next_idle)
        if (*link == &me) {
            *link = me.next_idle;
            return;
        }
}

// Claims under the lock, so that no worker can be about to claim a queue after `forget` has returned.
PooledQueue* WorkerPool::claim_ready_queue() {
    while (PooledQueue* const queue = ready_first_) {
        ready_first_ = queue->next_ready_;
        if (!ready_first_)
            ready_last_ = nullptr;
        queue->in_ready_list_ = false;
        ready_count_.fetch_sub(1, std::memory_order_relaxed);
        if (queue->claim_scheduled())
            return queue;
    }
    return nullptr;
}

void WorkerPool::leave_behind() {
    // Another thread that has left a queue of this pool behind will drain this queue, too, because it reads the list later.
    if (is_left_behind_.exchange(true))
        return;
    next_left_behind_ = left_behind_here_;
    left_behind_here_ = this;
}

void WorkerPool::drain_left_behind_pools() {
    while (WorkerPool* const pool = left_behind_here_) {
        left_behind_here_ = pool->next_left_behind_;
        pool->is_left_behind_.store(false);
        for (;;) {
            PooledQueue* queue = nullptr;
            {
                ShortLock lock(pool->mutex_);
                queue = pool->claim_ready_queue();
            }
            if (!queue)
                break;
            queue->run_claimed();
        }
    }
}

void WorkerPool::forget(PooledQueue& queue) {
    ShortLock lock(mutex_);
    if (!queue.in_ready_list_)
        return;
    PooledQueue* previous = nullptr;
    for (PooledQueue* other = ready_first_; other != &queue; other = other->next_ready_)
        previous = other;
    (previous ? previous->next_ready_ : ready_first_) = queue.next_ready_;
    if (ready_last_ == &queue)
        ready_last_ = previous;
    ready_count_.fetch_sub(1, std::memory_order_relaxed);
}

void WorkerPool::work(Worker& me) {
    for (;;) {
        PooledQueue* queue = nullptr;
        ParallelTask* task = nullptr;
        {
            ShortLock lock(mutex_);
            if (stopping_)
                return;
            stop_idling(me);
            queue = claim_ready_queue();
            if (!queue) {
                task = joinable_task();
                if (task) {
                    task->join();
                } else {
                    me.next_idle = idle_;
                    me.is_in_idle_list = true;
                    idle_ = &me;
                }
            }
        }
        if (queue) {
            invite();
            queue->run_claimed();
            drain_left_behind();
        } else if (task) {
            invite();
            task->work(me.workspace, place_of(sched_getcpu()), &ready_count_);
            task->leave();
        } else if (PooledQueue* const stranded = claim_stranded_queue()) {
            {
                ShortLock lock(mutex_);
                stop_idling(me);
            }
            stranded->run_claimed();
        } else if (may_spin_) {
            me.parker.park(me.spinning);
        } else {
            me.parker.park();
        }
    }
}

void WorkerPool::begin_blocking() {
    Worker* worker = nullptr;
    {
        ShortLock lock(mutex_);
        ++blocked_;
        if (ready_first_ || joinable_task())
            worker = wanted_worker();
    }
    if (worker)
        worker->parker.wake();
}

void WorkerPool::end_blocking() {
    ShortLock lock(mutex_);
    --blocked_;
}

BlockingSection::BlockingSection() : pool_(Worker::current ? &Worker::current->pool : nullptr) {
    if (pool_)
        pool_->begin_blocking();
}

BlockingSection::~BlockingSection() {
    if (pool_)
        pool_->end_blocking();
}

}  // namespace polder::devices
