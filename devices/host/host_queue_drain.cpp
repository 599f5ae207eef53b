// The draining half of HostQueue: executes operations in order, each after its waits.
//
// The thread that holds the claim runs `drain`. When an operation waits for another queue, a helping thread drains that
// queue, too, or sleeps; a worker parks its own queue as a waiter on the other timeline and continues with other work.
#include <algorithm>
#include <host/bulk.h>
#include <host/clock.h>
#include <host/foreign_waits.h>
#include <host/host_queue.h>
#include <host/launch.h>
#include <typeinfo>

namespace polder::devices {
namespace {

// How many operations of one queue a worker executes while other queues wait for a worker.
constexpr uint32_t stint_max = 64;

HostQueue* as_host_queue(driver::Queue* queue) {
    return typeid(*queue) == typeid(HostQueue) ? static_cast<HostQueue*>(queue) : nullptr;
}

// Whether one of the operation's waits has failed. All of them must be complete.
bool has_failed_wait(const Operation& operation) {
    return operation.has_failed_wait ||
           std::any_of(operation.waits, operation.waits + operation.wait_count,
                       [](driver::Timepoint wait) { return wait.queue->status(wait.value) != Status::success; });
}

// The lowest address of the calling thread's stack.
uintptr_t stack_floor() {
    [[gnu::tls_model("initial-exec")]] static constinit thread_local uintptr_t floor = 0;
    if (floor == 0) {
        pthread_attr_t attributes;
        void* lowest = nullptr;
        size_t size = 0;
        if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
            pthread_attr_getstack(&attributes, &lowest, &size);
            pthread_attr_destroy(&attributes);
        }
        floor = std::max<uintptr_t>(reinterpret_cast<uintptr_t>(lowest), 1);
    }
    return floor;
}

}  // namespace

// How many queues a thread drains recursively before it leaves the rest to workers, if there are any.
uint32_t HostQueue::help_depth_max() const { return pool_.workers_refused() ? 512 : 8; }

bool HostQueue::waits_are_complete(Operation& operation, uint32_t depth) {
    for (; operation.waits_seen < operation.wait_count; ++operation.waits_seen) {
        const driver::Timepoint wait = operation.waits[operation.waits_seen];
        if (wait.is_complete())
            continue;
        if (!WorkerPool::is_any_worker_here())
            wait_as_helper(wait, depth);
        else if (wait_as_worker(wait, depth) == Wait::parked)
            return false;
    }
    return true;
}

void HostQueue::wait_as_helper(driver::Timepoint timepoint, uint32_t depth) {
    HostQueue* const other = as_host_queue(timepoint.queue);
    if (!other) {
        timepoint.queue->flush();
        timepoint.queue->wait(timepoint.value);
        return;
    }
    if (depth < help_depth_max() && other->pool_.may_execute_here())
        other->help(timepoint.value, depth + 1);
    if (timepoint.is_complete())
        return;
    other->promise(timepoint.value, depth + 1);
    other->wait_and_help(timepoint.value);
}

HostQueue::Wait HostQueue::wait_as_worker(driver::Timepoint timepoint, uint32_t depth) {
    HostQueue* const other = as_host_queue(timepoint.queue);
    if (other) {
        if (depth < help_depth_max() && &other->pool_ == &pool_)
            other->help(timepoint.value, depth + 1);
        if (timepoint.is_complete())
            return Wait::over;
        other->promise(timepoint.value, depth + 1);
    } else {
        timepoint.queue->flush();
    }
    resumption_.value = timepoint.value;
    driver::Fence* const fence = other ? nullptr : timepoint.queue->fence();
    // Parks before adding the waiter: as soon as another thread may resume the queue, this thread must not use it.
    claim_.park();
    const bool is_fenced = other ? other->add_waiter(resumption_) : fence && fence->notify(resumption_);
    if (is_fenced || (!other && wait_elsewhere(timepoint, resumption_)))
        return Wait::parked;
    claim_.unpark();
    return Wait::over;
}

// How much of the calling thread's stack a kernel may use.
uint64_t HostQueue::stack_left() {
    constexpr uint64_t least_stack_bytes = uint64_t{64} * 1024;
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    return here - stack_floor() - std::min(here - stack_floor(), least_stack_bytes);
}

// False for a kernel that may need more stack than this thread of the application has left.
bool HostQueue::fits_this_thread(Operation& operation) const {
    if (operation.kind != OperationKind::launch)
        return true;
    // Forms of code that need more stack may have been made since the launch was submitted.
    auto& launch = static_cast<LaunchRecord&>(operation);
    launch.stack_bytes = std::max(launch.stack_bytes, launch.kernel->contest.stack_bytes());
    return WorkerPool::is_any_worker_here() || stack_left() > launch.stack_bytes;
}

HostQueue::Outcome HostQueue::drain(uint64_t limit, uint32_t depth) {
    for (uint32_t done = 0; executed_ < limit; ++done) {
        if (!current_) {
            if (executed_ == submitted_.load(std::memory_order_acquire))
                break;
            if (limit == nobody && done >= stint_max && pool_.backlog().load(std::memory_order_relaxed) != 0)
                return Outcome::interrupted;
            current_ = &log_.take();
        }
        Operation& operation = *current_;
        const bool fits = fits_this_thread(operation);
        if (!fits && !pool_.workers_refused())
            return Outcome::interrupted;
        if (operation.wait_count != 0 && !waits_are_complete(operation, depth))
            return Outcome::parked;
        const uint64_t value = executed_ + 1;
        started_.store(value, std::memory_order_release);
        driver::OperationTimes* const times = operation.times;
        if (times)
            times->start(now_ns());
        const bool may_not = has_failed_wait(operation) || (operation.needs_previous && has_previous_failed_);
        const Status status = may_not ? Status::exec_status_error_for_events_in_wait_list
                              : fits  ? execute(operation)
                                      : Status::out_of_resources;
        if (times)
            times->end(now_ns());
        has_previous_failed_ = status != Status::success;
        if (has_previous_failed_) [[unlikely]]
            note_failure(value, status);
        current_ = nullptr;
        executed_ = value;
        complete(value);
    }
    return Outcome::drained;
}

Status HostQueue::execute(Operation& operation) {
    Workspace& workspace = pool_.workspace_here(workspace_);
    switch (operation.kind) {
    case OperationKind::marker: return Status::success;
    case OperationKind::launch: return execute_launch(static_cast<LaunchRecord&>(operation), pool_, workspace);
    case OperationKind::copy:
        execute_copy(static_cast<const CopyRecord&>(operation), workspace);
        return Status::success;
    case OperationKind::fill:
        execute_bulk_fill(static_cast<const FillRecord&>(operation), pool_, workspace);
        return Status::success;
    case OperationKind::call: {
        const driver::HostOperation& host = static_cast<const CallRecord&>(operation).operation;
        const BlockingSection section;
        host.function(host.data);
        return Status::success;
    }
    }
    return Status::invalid_operation;
}

void HostQueue::execute_copy(const CopyRecord& record, Workspace& workspace) {
    if (!options_.interconnect || record.direction == LinkDirection::local)
        return execute_bulk_copy(record, pool_, workspace);
    const uint64_t bytes = record.shape.row_bytes * record.shape.rows * record.shape.slices;
    const uint64_t deadline_ns = options_.interconnect->reserve(record.direction, bytes, now_ns());
    execute_bulk_copy(record, pool_, workspace);
    if (now_ns() >= deadline_ns)
        return;
    const BlockingSection section;
    InterconnectModel::sleep_until(deadline_ns);
}

void HostQueue::complete(uint64_t value) {
    completed_.exchange(value);
    waiters_.notify(value);
}

void HostQueue::note_failure(uint64_t value, Status status) {
    Lock lock(mutex_);
    failed_.note(value, status);
    any_failed_.store(true, std::memory_order_release);
}

Status HostQueue::status(uint64_t value) const {
    if (!any_failed_.load(std::memory_order_acquire)) [[likely]]
        return Status::success;
    Lock lock(mutex_);
    return failed_.status(value);
}

}  // namespace polder::devices
