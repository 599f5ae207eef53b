#include <algorithm>
#include <cstring>
#include <host/bulk.h>
#include <host/clock.h>
#include <host/foreign_waits.h>
#include <host/host_queue.h>
#include <host/launch.h>
#include <host/print.h>
#include <thread>
#include <typeinfo>

namespace polder::devices {
namespace {

// Small operations that may stand before a worker is woken for them.
constexpr uint64_t backlog_max = 16;
// Queues that one thread drains within each other before it leaves the rest to others.
constexpr uint32_t help_depth_max = 8;
// Operations that a worker executes from one queue while others wait for a worker.
constexpr uint32_t stint_max = 64;

HostQueue* as_host_queue(driver::Queue* queue) {
    return typeid(*queue) == typeid(HostQueue) ? static_cast<HostQueue*>(queue) : nullptr;
}

constexpr size_t rounded_up(size_t bytes, size_t alignment) { return (bytes + alignment - 1) & ~(alignment - 1); }

// The lowest address of the calling thread's stack.
uintptr_t stack_floor() {
    static thread_local uintptr_t floor = 0;
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

} // namespace

HostQueue::HostQueue(Engine& engine, const Options& options)
    : engine_(engine), options_(options), workspace_(engine.local_memory()) {
    resumption_.queue = this;
    resumption_.reached = [](TimelineWaiter& waiter) {
        HostQueue& queue = *static_cast<Resumption&>(waiter).queue;
        queue.engine_.schedule(queue, State::parked);
    };
}

HostQueue::~HostQueue() {
    wait(submitted_.load(std::memory_order_relaxed));
    // Whoever executed the last operation may still be about to let go of the queue.
    while (state_.load(std::memory_order_acquire) != State::idle)
        std::this_thread::yield();
    engine_.forget(*this);
}

// --- submission ---

template <class Record>
Record& HostQueue::begin_record(OperationKind kind, const driver::Submission& submission, size_t extra_bytes) {
    constexpr size_t record_bytes = rounded_up(sizeof(Record), OperationLog::record_alignment);
    const size_t waits_offset = record_bytes + rounded_up(extra_bytes, alignof(driver::Timepoint));
    const size_t total = waits_offset + submission.waits.size() * sizeof(driver::Timepoint);
    auto* const record = log_.append<Record>(total - sizeof(Record));
    record->kind = kind;
    record->times = submission.times;
    if (!submission.waits.empty()) {
        record->waits = reinterpret_cast<driver::Timepoint*>(reinterpret_cast<std::byte*>(record) + waits_offset);
        for (const driver::Timepoint wait : submission.waits)
            if (wait.queue != this && !wait.is_complete())
                record->waits[record->wait_count++] = wait;
    }
    return *record;
}

// Operations that nobody may be at work on. Looks at the drainer's counter only when it matters.
uint64_t HostQueue::backlog_at(uint64_t value) {
    if (value - last_promised_ >= backlog_max)
        last_promised_ = std::max(last_promised_, completed_.load(std::memory_order_relaxed));
    return value - last_promised_;
}

driver::Timepoint HostQueue::publish(Weight weight) {
    const uint64_t value = submitted_.load(std::memory_order_relaxed) + 1;
    submitted_.store(value, std::memory_order_release);
    if (weight == Weight::large || backlog_at(value) >= backlog_max) {
        last_promised_ = value;
        promise(value);
    }
    return {this, value};
}

driver::Timepoint HostQueue::marker(const driver::Submission& submission) {
    begin_record<Operation>(OperationKind::marker, submission, 0);
    return publish(Weight::small);
}

driver::Timepoint HostQueue::call(const driver::HostOperation& operation, const driver::Submission& submission) {
    begin_record<CallRecord>(OperationKind::call, submission, 0).operation = operation;
    return publish(Weight::large);
}

driver::Timepoint HostQueue::copy(const driver::CopyOperation& operation, const driver::Submission& submission) {
    using Place = driver::CopyOperation::Place;
    const auto resolve = [this](const driver::CopyOperation::End& end) {
        return end.place == Place::device ? options_.window.resolve(end.address) : end.address.host();
    };
    auto& record = begin_record<CopyRecord>(OperationKind::copy, submission, 0);
    record.from = resolve(operation.from);
    record.to = resolve(operation.to);
    record.shape = operation.shape;
    record.from_layout = operation.from.layout;
    record.to_layout = operation.to.layout;
    if (operation.from.place != operation.to.place)
        record.direction = operation.to.place == Place::device ? LinkDirection::in : LinkDirection::out;
    const uint64_t bytes = record.shape.row_bytes * record.shape.rows * record.shape.slices;
    return publish(bytes >= bulk_parallel_bytes ? Weight::large : Weight::small);
}

driver::Timepoint HostQueue::copy_resolved(const std::byte* from, std::byte* to, uint64_t size, LinkDirection direction,
                                           const driver::Submission& submission) {
    auto& record = begin_record<CopyRecord>(OperationKind::copy, submission, 0);
    record.from = from;
    record.to = to;
    record.shape = {size, 1, 1};
    record.direction = direction;
    return publish(size >= bulk_parallel_bytes ? Weight::large : Weight::small);
}

driver::Timepoint HostQueue::fill(const driver::FillOperation& operation, const driver::Submission& submission) {
    auto& record = begin_record<FillRecord>(OperationKind::fill, submission, 0);
    record.to = options_.window.resolve(operation.address);
    record.size = operation.size;
    record.pattern_bytes = static_cast<uint32_t>(operation.pattern.size());
    std::memcpy(record.pattern, operation.pattern.data(), operation.pattern.size());
    return publish(record.size >= bulk_parallel_bytes ? Weight::large : Weight::small);
}

driver::Timepoint HostQueue::launch(const driver::LaunchOperation& operation, const driver::Submission& submission) {
    const size_t argument_bytes = operation.arguments.size();
    auto& record = begin_record<LaunchRecord>(OperationKind::launch, submission, argument_bytes);
    record.kernel = static_cast<const HostKernel*>(operation.kernel);

    auto* const arguments =
        reinterpret_cast<std::byte*>(&record) + rounded_up(sizeof(LaunchRecord), OperationLog::record_alignment);
    if (argument_bytes != 0)
        std::memcpy(arguments, operation.arguments.data(), argument_bytes);
    record.arguments = arguments;
    if (options_.window.size != 0)
        for (const uint32_t offset : operation.pointer_offsets) {
            uint64_t address;
            std::memcpy(&address, arguments + offset, sizeof address);
            address = options_.window.resolve(address);
            std::memcpy(arguments + offset, &address, sizeof address);
        }

    LaunchContext& context = record.context;
    context.work_dim = operation.work_dim;
    record.group_count = 1;
    record.items_per_group = 1;
    for (uint32_t d = 0; d < 3; ++d) {
        const bool used = d < operation.work_dim;
        context.global_offset[d] = used ? operation.global_offset[d] : 0;
        context.global_size[d] = used ? operation.global_size[d] : 1;
        context.local_size[d] = used ? operation.local_size[d] : 1;
        context.num_groups[d] = (context.global_size[d] + context.local_size[d] - 1) / context.local_size[d];
        record.group_count *= context.num_groups[d];
        record.items_per_group *= context.local_size[d];
    }
    context.program_variables = options_.window.resolve(operation.program_variables);
    context.print = print_text;
    context.print_user = &record.printed;

    record.local_bytes = record.kernel->image.local_bytes + operation.local_argument_bytes;
    context.local_bytes = static_cast<uint32_t>(record.local_bytes);
    record.scratch_bytes = record.kernel->image.scratch_bytes_per_work_item * record.items_per_group + 4096;
    return publish(is_large(record) ? Weight::large : Weight::small);
}

// --- who drains ---

void HostQueue::flush() { promise(submitted_.load(std::memory_order_acquire)); }

void HostQueue::promise(uint64_t value) {
    if (completed() >= value)
        return;
    uint64_t before = promised_.load();
    while (before < value && !promised_.compare_exchange_weak(before, value)) {
    }
    // Either this thread sees that the queue is idle, or whoever is about to make it idle sees the promise.
    for (State state = state_.load(); state == State::idle || state == State::running;) {
        if (state == State::idle)
            return engine_.schedule(*this, State::idle);
        if (state_.compare_exchange_weak(state, State::running_more))
            return;
    }
}

bool HostQueue::become_scheduled(State from) {
    State expected = from;
    if (state_.compare_exchange_strong(expected, State::scheduled))
        return true;
    // When the holder itself hands over, others may have turned `running` to `running_more`.
    return from == State::running && expected == State::running_more &&
           state_.compare_exchange_strong(expected, State::scheduled);
}

bool HostQueue::claim_scheduled() {
    State expected = State::scheduled;
    return state_.compare_exchange_strong(expected, State::running);
}

bool HostQueue::claim() {
    State expected = State::idle;
    return state_.compare_exchange_strong(expected, State::running) || claim_scheduled();
}

void HostQueue::run_claimed() {
    for (;;) {
        switch (drain(nobody, 0)) {
        case Outcome::parked: return;
        case Outcome::interrupted: return engine_.schedule(*this, State::running);
        case Outcome::drained: break;
        }
        if (become_idle())
            return;
    }
}

// False: there is promised work left. The queue may be gone after true.
bool HostQueue::become_idle() {
    for (;;) {
        if (promised_.load() > executed_)
            return false;
        State expected = State::running;
        if (state_.compare_exchange_strong(expected, State::idle))
            return true;
        state_.store(State::running);
    }
}

void HostQueue::help(uint64_t value, uint32_t depth) {
    if (!claim())
        return;
    if (drain(value, depth) == Outcome::parked)
        return;
    if (!become_idle())
        engine_.schedule(*this, State::running);
}

void HostQueue::wait(uint64_t value) {
    if (completed() >= value)
        return;
    if (engine_.may_execute_here()) {
        help(value, 0);
        if (completed() >= value)
            return;
    }
    promise(value);
    sleep_until(value);
}

// --- waiting ---

namespace {
struct SleepingThread : TimelineWaiter {
    Parker parker;
};
} // namespace

void HostQueue::sleep_until(uint64_t value) {
    for (uint32_t i = 0; i < engine_.spins(); ++i) {
        if (completed() >= value)
            return;
        spin_pause();
    }
    SleepingThread thread;
    thread.value = value;
    thread.reached = [](TimelineWaiter& waiter) { static_cast<SleepingThread&>(waiter).parker.wake(); };
    if (!add_waiter(thread))
        return;
    const BlockingSection section;
    thread.parker.park(0);
}

bool HostQueue::add_waiter(TimelineWaiter& waiter) {
    Lock lock(mutex_);
    const uint64_t lowest = lowest_awaited_.load(std::memory_order_relaxed);
    lowest_awaited_.store(std::min(lowest, waiter.value));
    // Either this sees the completion, or `complete` sees that somebody waits.
    if (completed_.load() >= waiter.value) {
        lowest_awaited_.store(lowest);
        return false;
    }
    waiter.next = waiters_;
    waiters_ = &waiter;
    return true;
}

void HostQueue::tell_waiters(uint64_t value) {
    TimelineWaiter* reached = nullptr;
    {
        Lock lock(mutex_);
        uint64_t lowest = nobody;
        for (TimelineWaiter** link = &waiters_; *link;) {
            TimelineWaiter* const waiter = *link;
            if (waiter->value <= value) {
                *link = waiter->next;
                waiter->next = reached;
                reached = waiter;
            } else {
                lowest = std::min(lowest, waiter->value);
                link = &waiter->next;
            }
        }
        lowest_awaited_.store(lowest);
    }
    while (reached) {
        TimelineWaiter* const next = reached->next;
        reached->reached(*reached);
        reached = next;
    }
}

bool HostQueue::waits_are_complete(Operation& operation, uint32_t depth) {
    for (; operation.waits_seen < operation.wait_count; ++operation.waits_seen) {
        const driver::Timepoint wait = operation.waits[operation.waits_seen];
        if (wait.is_complete())
            continue;
        if (!engine_.is_worker_here())
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
    if (depth < help_depth_max && other->engine_.may_execute_here())
        other->help(timepoint.value, depth + 1);
    if (timepoint.is_complete())
        return;
    other->promise(timepoint.value);
    other->sleep_until(timepoint.value);
}

HostQueue::Wait HostQueue::wait_as_worker(driver::Timepoint timepoint, uint32_t depth) {
    HostQueue* const other = as_host_queue(timepoint.queue);
    if (other) {
        if (depth < help_depth_max && &other->engine_ == &engine_)
            other->help(timepoint.value, depth + 1);
        if (timepoint.is_complete())
            return Wait::over;
        other->promise(timepoint.value);
    } else {
        timepoint.queue->flush();
    }
    resumption_.value = timepoint.value;
    // From the moment somebody may resume the queue it is no longer this thread's.
    state_.store(State::parked);
    if (other ? other->add_waiter(resumption_) : wait_elsewhere(timepoint, resumption_))
        return Wait::parked;
    state_.store(State::running);
    return Wait::over;
}

// --- execution ---

// Kernels may need more stack than a thread of the application has left.
bool HostQueue::fits_this_thread(const Operation& operation) const {
    if (operation.kind != OperationKind::launch || engine_.is_worker_here())
        return true;
    constexpr uint64_t least_stack_bytes = uint64_t{64} * 1024;
    const auto& launch = static_cast<const LaunchRecord&>(operation);
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    return here - stack_floor() >= launch.kernel->image.stack_bytes + least_stack_bytes;
}

HostQueue::Outcome HostQueue::drain(uint64_t limit, uint32_t depth) {
    for (uint32_t done = 0; executed_ < limit; ++done) {
        if (!current_) {
            if (executed_ == submitted_.load(std::memory_order_acquire))
                break;
            if (limit == nobody && done >= stint_max && engine_.backlog().load(std::memory_order_relaxed) != 0)
                return Outcome::interrupted;
            current_ = &log_.take();
        }
        Operation& operation = *current_;
        if (!fits_this_thread(operation))
            return Outcome::interrupted;
        if (operation.wait_count != 0 && !waits_are_complete(operation, depth))
            return Outcome::parked;
        const uint64_t value = executed_ + 1;
        started_.store(value, std::memory_order_release);
        driver::OperationTimes* const times = operation.times;
        if (times)
            times->start(now_ns());
        const Status status = execute(operation);
        if (times)
            times->end(now_ns());
        if (status != Status::success) [[unlikely]]
            note_failure(value, status);
        current_ = nullptr;
        executed_ = value;
        complete(value);
    }
    return Outcome::drained;
}

Status HostQueue::execute(Operation& operation) {
    assert(engine_.may_execute_here());
    Workspace& workspace = engine_.workspace_here(workspace_);
    switch (operation.kind) {
    case OperationKind::marker: return Status::success;
    case OperationKind::launch: return execute_launch(static_cast<LaunchRecord&>(operation), engine_, workspace);
    case OperationKind::copy:
        execute_copy(static_cast<const CopyRecord&>(operation), workspace);
        return Status::success;
    case OperationKind::fill:
        execute_bulk_fill(static_cast<const FillRecord&>(operation), engine_, workspace);
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
    if (!options_.link || record.direction == LinkDirection::local)
        return execute_bulk_copy(record, engine_, workspace);
    const uint64_t bytes = record.shape.row_bytes * record.shape.rows * record.shape.slices;
    const uint64_t deadline_ns = options_.link->reserve(record.direction, bytes, now_ns());
    execute_bulk_copy(record, engine_, workspace);
    if (now_ns() >= deadline_ns)
        return;
    const BlockingSection section;
    InterconnectModel::sleep_until(deadline_ns);
}

void HostQueue::complete(uint64_t value) {
    completed_.exchange(value);
    if (value >= lowest_awaited_.load()) [[unlikely]]
        tell_waiters(value);
}

void HostQueue::note_failure(uint64_t value, Status status) {
    Lock lock(mutex_);
    failed_[value] = status;
    any_failed_.store(true, std::memory_order_release);
}

Status HostQueue::status(uint64_t value) const {
    if (!any_failed_.load(std::memory_order_acquire)) [[likely]]
        return Status::success;
    Lock lock(mutex_);
    const auto found = failed_.find(value);
    return found == failed_.end() ? Status::success : found->second;
}

} // namespace polder::devices
