// ForeignQueue: the base class for the queues of foreign devices: devices behind an interface that has its own queues and events
// (CUDA, another OpenCL implementation).
//
// An operation is *pushed* (given to the device) by the submitting thread when the device can do all of it; it then waits for
// events of the device. An operation that needs the host stays *pending*, and so do all operations after it. The host is needed for
// operations that wait for another driver's queue, for host operations, and when needs_host() is true. Pending operations are executed by
// - the thread that completes what the oldest one waits for, if that queue has a fence (driver::Fence);
// - a thread that waits for this queue;
// - the queue's own thread, which `flush` starts when there is no such fence.
//
// The derived class is final, calls `finish` in its destructor, and has a ForkMembership as its last member.
//
// When there is no host memory, a submission throws std::bad_alloc and is not on the timeline. Every submitted operation completes: when
// there is no memory for it later, it fails with out_of_host_memory.
//
// Threads: see driver::Queue. The mutex is not held while the host waits for anything.
#pragma once

#include <base/fork.h>
#include <base/mutex.h>
#include <base/service_thread.h>

#include <algorithm>
#include <cassert>
#include <deque>
#include <foreign/foreign_operation.h>
#include <host/clock.h>
#include <host/failure_log.h>
#include <limits>
#include <new>

namespace polder::devices {

inline void set_times(driver::OperationTimes* times, uint64_t now_ns) {
    if (!times)
        return;
    times->start(now_ns);
    times->end(now_ns);
}

template <class Operation>
class ForeignQueue : public driver::Queue, protected ForkParticipant {
public:
    ForeignQueue(const ForeignQueue&) = delete;
    ForeignQueue& operator=(const ForeignQueue&) = delete;

    driver::Timepoint copy(const driver::CopyOperation& operation, const driver::Submission& submission) final {
        return submit_work(operation, submission);
    }
    driver::Timepoint fill(const driver::FillOperation& fill, const driver::Submission& submission) final {
        return submit_work(FillWork{fill.address, fill.size, {fill.pattern.begin(), fill.pattern.end()}}, submission);
    }
    driver::Timepoint call(const driver::HostOperation& operation, const driver::Submission& submission) final {
        return submit_work(operation, submission);
    }
    driver::Timepoint marker(const driver::Submission& submission) final {
        return submit_work(MarkerWork{}, submission);
    }
    void flush() final;
    [[nodiscard]] Status status(uint64_t value) const final {
        if (value >= lost_from_.load(std::memory_order_acquire))
            return Status::out_of_resources;
        const Lock lock(mutex_);
        return failures_.status(value);
    }

protected:
    // The name is the thread's, at most 15 characters. `word`: the timeline's counter when the device writes it; lives as long as the queue.
    explicit ForeignQueue(const char* thread_name, std::atomic<uint64_t>* word = nullptr) : thread_name_(thread_name) {
        if (word)
            publish_in(*word);
    }
    ~ForeignQueue() override = default;
    // Waits until everything is complete, and ends the thread.
    void finish();

    // --- the device's part ---
    [[nodiscard]] virtual bool is_lost() const = 0;
    // Called in the child of a fork, where the device does not work: no function of its interface may be called.
    virtual void lose_in_child() = 0;
    [[nodiscard]] virtual bool needs_host(const Operation& operation) const = 0;
    // Makes the device wait for `wait`, a timepoint of another queue. False when the host must wait. When it throws, it has changed nothing.
    [[nodiscard]] virtual bool order_after(driver::Timepoint wait, Operation& operation) = 0;
    // Gives the operation to the device, and sets pushed_. When it throws, the device has got nothing of it, and its events are not
    // released.
    virtual void push(Operation& operation) POLDER_REQUIRES(mutex_) = 0;
    // Makes the device begin the pushed operations, and publish them if it can do that itself.
    virtual void flush_pushed() POLDER_REQUIRES(mutex_) = 0;
    // True when a thread must publish the pushed operations.
    [[nodiscard]] virtual bool needs_thread() const POLDER_REQUIRES(mutex_) = 0;
    // Executes and publishes the oldest pending operation, whose waits are complete. Throws only before the device has got a part of it.
    virtual void execute_on_host(Operation& operation) = 0;
    // Called when the host has executed the oldest operation that is not complete.
    virtual void publish_by_host(uint64_t value) POLDER_REQUIRES(mutex_) {
        pushed_ = value;
        publish(value);
    }
    // Whether an operation that was pushed or executed has failed.
    [[nodiscard]] virtual bool has_failed(uint64_t value) const POLDER_REQUIRES(mutex_) {
        return failures_.status(value) != Status::success;
    }
    // Called when the device is lost: forgets the pushed operations, and the events of pending ones.
    enum class Where : uint8_t { here, in_child };  // in the child of a fork, nothing is released
    virtual void forget_pushed(Where where) POLDER_REQUIRES(mutex_) = 0;
    virtual void release_events(Operation&) {}
    // What the queue's thread does until stopping_.
    virtual void work() = 0;

    // --- for the device's part ---
    template <class Work>
    driver::Timepoint submit_work(Work&& work, const driver::Submission& submission) {
        Operation operation;
        operation.work = std::forward<Work>(work);
        return submit(std::move(operation), submission);
    }
    // True when an operation with these waits that needs no host may be pushed by its submission, and waits for nothing but earlier
    // operations of this queue.
    [[nodiscard]] bool may_push_at_once(driver::Waits waits) const POLDER_REQUIRES(mutex_) {
        return pending_.empty() && !is_pumping_ && !is_lost() &&
               std::ranges::all_of(waits, [this](driver::Timepoint wait) { return !wait.queue || wait.queue == this; });
    }
    // False when something that it waits for has failed. All of that has been pushed or is complete.
    [[nodiscard]] bool may_execute(const Operation& operation) const POLDER_REQUIRES(mutex_) {
        bool may = !operation.has_failed_wait;
        for (const uint64_t value : operation.own_waits)
            may = may && !has_failed(value);
        return may;
    }
    // Pushes all operations up to `value`. False when they are complete already.
    [[nodiscard]] bool push_up_to(uint64_t value);
    // Whether there is a pending operation that the queue's thread has to execute.
    [[nodiscard]] bool has_pending_work() const POLDER_REQUIRES(mutex_) {
        return !pending_.empty() && !is_pumping_ && !is_armed_ && pending_.front().value <= wanted_;
    }
    // Executes the oldest pending operation; the mutex is released meanwhile.
    void pump_one() POLDER_REQUIRES(mutex_);
    // Makes all incomplete operations fail now. While the host waits for the waits of an operation, it and later ones fail after that wait.
    void abandon() POLDER_REQUIRES(mutex_);
    // Wakes the queue's thread, which checks for work. False when no thread can be started.
    [[nodiscard]] bool wake_thread() POLDER_REQUIRES(mutex_) {
        if (!start_thread())
            return false;
        if (thread_sleeps_)
            wake_.notify_one();
        return true;
    }
    void publish(uint64_t value) { word_->store(value, std::memory_order_release); }

    // Of ForkParticipant. A derived class may add conditions.
    [[nodiscard]] bool is_quiet() const override POLDER_NO_THREAD_SAFETY_ANALYSIS {
        return pending_.empty() && !is_pumping_ && !is_armed_ && callbacks_ == 0;
    }

    mutable Mutex mutex_;
    ConditionVariable changed_;  // for the threads that wait
    ConditionVariable wake_;  // for the queue's thread
    bool thread_sleeps_ POLDER_GUARDED_BY(mutex_) = false;  // until it is woken
    bool stopping_ POLDER_GUARDED_BY(mutex_) = false;
    uint64_t submitted_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t pushed_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t wanted_ POLDER_GUARDED_BY(mutex_) = 0;  // flushed: executed up to here without further calls
    FailureLog failures_ POLDER_GUARDED_BY(mutex_);

private:
    void publish_in(std::atomic<uint64_t>& word) {
        word_ = &word;
        publish_at(word);
    }

    struct Resumption : driver::FenceWaiter {
        ForeignQueue* queue = nullptr;
    };
    enum class Progress : uint8_t { sure, needs_caller };

    void lock_for_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS {
        mutex_.lock();
        completed_at_fork_ = completed();
    }
    void unlock_after_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
    void forget_threads() override POLDER_NO_THREAD_SAFETY_ANALYSIS;

    driver::Timepoint submit(Operation&& operation, const driver::Submission& submission);
    void collect_waits(Operation& operation, driver::Waits waits);
    [[nodiscard]] driver::Timepoint accept(Operation& operation);
    [[nodiscard]] bool try_order_after(driver::Timepoint wait, Operation& operation) {
        try {
            return order_after(wait, operation);
        } catch (...) {
            return false;  // the host needs no memory to wait
        }
    }
    void execute_pending(Operation& operation);
    // Makes a pending operation fail for which there is no host memory.
    void fail_pending(Operation& operation);
    // Removes an operation that is not executed because the device is lost.
    void drop(Operation& operation) {
        release_events(operation);
        set_times(operation.times, now_ns());
    }
    // True when the operation is flushed, its waits are complete, and it does not need the host.
    [[nodiscard]] bool is_ready(const Operation& operation) const POLDER_REQUIRES(mutex_) {
        return operation.value <= wanted_ && !first_wait(operation).queue && !needs_host(operation);
    }
    // The first wait that is not complete; a default Timepoint when all are complete.
    [[nodiscard]] static driver::Timepoint first_wait(const Operation& operation) {
        for (const driver::Timepoint wait : operation.waits)
            if (!wait.is_complete())
                return wait;
        return {};
    }
    // Pushes flushed operations up to the first that must wait, and makes sure that the others are executed without further calls,
    // by a fence or by the queue's thread.
    Progress advance() POLDER_REQUIRES(mutex_);
    // True when `wait` is complete, or its fence will call `resume`. The mutex is released meanwhile.
    [[nodiscard]] bool arm(driver::Timepoint wait) POLDER_REQUIRES(mutex_);
    void resume();
    // Called after `advance` by a thread that will not wait for the pushed operations: makes sure that flushed ones are published.
    void publish_without_caller() POLDER_REQUIRES(mutex_) {
        if (!is_lost() && completed() < wanted_ && needs_thread())
            static_cast<void>(wake_thread());
    }
    [[nodiscard]] bool start_thread() POLDER_REQUIRES(mutex_);

    const char* const thread_name_;
    std::atomic<uint64_t>* word_ = &completed_;
    std::deque<Operation> pending_ POLDER_GUARDED_BY(mutex_);
    bool is_pumping_ POLDER_GUARDED_BY(mutex_) = false;
    uint64_t pumped_ POLDER_GUARDED_BY(mutex_) = 0;  // the operation, while is_pumping_
    Resumption resumption_;
    bool is_armed_ POLDER_GUARDED_BY(mutex_) = false;  // a fence has resumption_
    uint32_t callbacks_ POLDER_GUARDED_BY(mutex_) = 0;  // threads in `resume`
    std::atomic<uint64_t> lost_from_{std::numeric_limits<uint64_t>::max()};
    uint64_t completed_at_fork_ = 0;
    ServiceThread thread_;  // started under the mutex
};

// --- submission ---

template <class Operation>
driver::Timepoint ForeignQueue<Operation>::submit(Operation&& operation, const driver::Submission& submission) {
    operation.times = submission.times;
    try {
        collect_waits(operation, submission.waits);
        return accept(operation);
    } catch (...) {
        release_events(operation);
        throw;
    }
}

template <class Operation>
void ForeignQueue<Operation>::collect_waits(Operation& operation, driver::Waits waits) {
    for (const driver::Timepoint wait : waits) {
        if (!wait.queue)
            continue;
        if (wait.queue == this)
            operation.own_waits.push_back(wait.value);
        else if (!wait.is_complete() && !try_order_after(wait, operation))
            operation.waits.push_back(wait);
        else
            // What was given to the device has failed by now, or its driver notices that later.
            operation.has_failed_wait |= wait.queue->status(wait.value) != Status::success;
    }
}

template <class Operation>
driver::Timepoint ForeignQueue<Operation>::accept(Operation& operation) {
    const Lock lock(mutex_);
    operation.value = ++submitted_;
    try {
        if (is_lost()) {
            drop(operation);
            abandon();
        } else if (!operation.waits.empty() || is_pumping_ || !pending_.empty() || needs_host(operation)) {
            pending_.push_back(std::move(operation));
        } else {
            push(operation);
        }
    } catch (...) {
        --submitted_;
        throw;
    }
    return {this, submitted_};
}

// --- the timeline ---

template <class Operation>
void ForeignQueue<Operation>::flush() {
    uint64_t last = 0;
    {
        const Lock lock(mutex_);
        if (is_lost())
            return abandon();
        if (completed() >= submitted_)
            return;
        last = wanted_ = submitted_;
        flush_pushed();
        if (advance() == Progress::sure) {
            if (!needs_thread() || wake_thread())
                return;
        }
    }
    // Without a thread, the caller does its part.
    wait(last);
}

template <class Operation>
bool ForeignQueue<Operation>::push_up_to(uint64_t value) {
    const Lock lock(mutex_);
    bool has_pumped = false;
    while (pushed_ < value && completed() < value) {
        if (is_pumping_) {
            changed_.wait(mutex_);
        } else if (is_lost()) {
            abandon();
        } else {
            pump_one();
            has_pumped = true;
        }
    }
    // Another thread may have left the rest to this one.
    if (has_pumped) {
        static_cast<void>(advance());
        publish_without_caller();
    }
    return completed() < value;
}

template <class Operation>
void ForeignQueue<Operation>::finish() {
    uint64_t last = 0;
    {
        const Lock lock(mutex_);
        last = submitted_;
    }
    wait(last);
    {
        const Lock lock(mutex_);
        // A fence that was reached will call `resume` soon.
        while (is_armed_ || callbacks_ != 0)
            changed_.wait(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
}

// --- pending operations ---

template <class Operation>
void ForeignQueue<Operation>::pump_one() {
    Operation operation = std::move(pending_.front());
    pending_.pop_front();
    is_pumping_ = true;
    pumped_ = operation.value;
    mutex_.unlock();
    try {
        execute_pending(operation);
    } catch (...) {
        fail_pending(operation);
    }
    mutex_.lock();
    is_pumping_ = false;
    if (is_lost())
        abandon();
    changed_.notify_all();
}

template <class Operation>
void ForeignQueue<Operation>::execute_pending(Operation& operation) {
    const bool is_for_host = needs_host(operation);
    for (const driver::Timepoint wait : operation.waits)
        if (!wait.is_complete() && (is_for_host || !try_order_after(wait, operation))) {
            wait.queue->flush();
            wait.queue->wait(wait.value);
        }
    for (const driver::Timepoint wait : operation.waits)
        operation.has_failed_wait |= wait.queue->status(wait.value) != Status::success;
    if (is_for_host && !is_lost())
        return execute_on_host(operation);
    const Lock lock(mutex_);
    if (is_lost()) {
        drop(operation);
        return abandon();
    }
    push(operation);
    if (operation.value <= wanted_ && (pending_.empty() || !is_ready(pending_.front())))
        flush_pushed();
}

// Everything before it has been pushed.
template <class Operation>
void ForeignQueue<Operation>::fail_pending(Operation& operation) {
    if (operation.value > 1)
        wait(operation.value - 1);
    const Lock lock(mutex_);
    drop(operation);
    if (is_lost())
        return abandon();
    failures_.note(operation.value, Status::out_of_host_memory);
    publish_by_host(operation.value);
}

template <class Operation>
ForeignQueue<Operation>::Progress ForeignQueue<Operation>::advance() {
    while (!is_lost() && has_pending_work()) {
        if (is_ready(pending_.front())) {
            pump_one();
            continue;
        }
        const driver::Timepoint wait = first_wait(pending_.front());
        if (wait.queue && arm(wait))
            continue;
        if (!start_thread())
            return Progress::needs_caller;
        wake_.notify_one();
        break;
    }
    return Progress::sure;
}

template <class Operation>
bool ForeignQueue<Operation>::arm(driver::Timepoint wait) {
    driver::Fence* const fence = wait.queue->fence();
    if (!fence)
        return false;
    resumption_.value = wait.value;
    resumption_.queue = this;
    resumption_.reached = [](driver::FenceWaiter& waiter) { static_cast<Resumption&>(waiter).queue->resume(); };
    is_armed_ = true;
    mutex_.unlock();
    const bool calls = fence->notify(resumption_);
    mutex_.lock();
    if (calls)
        return true;
    is_armed_ = false;
    changed_.notify_all();
    return wait.is_complete();
}

// Called by the thread that has completed the wait of the oldest operation.
template <class Operation>
void ForeignQueue<Operation>::resume() {
    const Lock lock(mutex_);
    is_armed_ = false;
    ++callbacks_;
    static_cast<void>(advance());
    publish_without_caller();
    --callbacks_;
    changed_.notify_all();
}

template <class Operation>
bool ForeignQueue<Operation>::start_thread() {
    return thread_.start(
        thread_name_,
        [](void* queue) -> void* {
            static_cast<ForeignQueue*>(queue)->work();
            return nullptr;
        },
        this);
}

// --- failures ---

template <class Operation>
void ForeignQueue<Operation>::abandon() {
    uint64_t expected = std::numeric_limits<uint64_t>::max();
    lost_from_.compare_exchange_strong(expected, completed() + 1, std::memory_order_release);
    for (Operation& operation : pending_)
        drop(operation);
    pending_.clear();
    forget_pushed(Where::here);
    // The thread that pumps may wait for another queue, which lives as long as what waits for it is not complete. That thread abandons the rest.
    pushed_ = is_pumping_ && pushed_ < pumped_ ? pumped_ - 1 : submitted_;
    publish(pushed_);
    changed_.notify_all();
}

// The device's interface does not work in the child, and its memory need not be there, so a counter that the device writes is not read.
template <class Operation>
void ForeignQueue<Operation>::forget_threads() {
    thread_.forget();
    thread_sleeps_ = is_armed_ = is_pumping_ = false;
    callbacks_ = 0;
    new (&wake_) ConditionVariable;  // threads of the parent may have waited on the old ones
    new (&changed_) ConditionVariable;
    lose_in_child();
    lost_from_.store(completed_at_fork_ + 1);
    forget_pushed(Where::in_child);
    pushed_ = submitted_;
    completed_.store(submitted_);
    publish_in(completed_);
}

}  // namespace polder::devices
