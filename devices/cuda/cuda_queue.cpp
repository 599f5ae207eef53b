// Submission, the timeline, failures, and the queue's life. See cuda_queue_push.cpp and cuda_queue_host.cpp.
#include <cuda/cuda_queue.h>
#include <host/clock.h>
#include <typeinfo>

namespace polder::cuda {
namespace {

// Failures after which nothing of the context works any more.
bool is_fatal(Code code) {
    switch (static_cast<int>(code)) {
    case 3:    // not initialized: the child of a fork
    case 4:    // deinitialized: the process exits
    case 46:   // device unavailable
    case 214:  // uncorrectable memory error
    case 700:  // illegal address
    case 702:  // launch timeout
    case 709:  // context is destroyed
    case 710:  // assert
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:  // stack, instruction, alignment, address space, pc, launch
    case 999: return true;
    default: return false;
    }
}

} // namespace

Result<std::unique_ptr<driver::Queue>> CudaQueue::create(const QueueServices& services) {
    CudaContext& context = services.context;
    if (context.is_lost())
        return fail(Status::out_of_resources, context.facts.name + " is lost");
    const CudaContext::Current current(context);
    POLDER_ASSIGN(counter, PinnedCounter::create(context));
    Stream stream = nullptr;
    POLDER_CUDA_TRY(context.api, stream_create(&stream, stream_non_blocking, 0), "cuStreamCreate");
    Event tail = nullptr;
    if (const Code code = context.api.event_create(&tail, event_disable_timing)) {
        context.api.stream_destroy(stream);
        return fail(context.api.error(code, "cuEventCreate"));
    }
    return std::unique_ptr<driver::Queue>(new CudaQueue(services, stream, tail, std::move(counter)));
}

CudaQueue::CudaQueue(const QueueServices& services, Stream stream, Event tail, std::unique_ptr<PinnedCounter> counter)
    : services_(services), context_(services.context), stream_(stream), counter_(std::move(counter)),
      word_(&counter_->value()), tail_(tail) {
    publish_at(*word_);
}

CudaQueue::~CudaQueue() {
    uint64_t last = 0;
    {
        Lock lock(mutex_);
        last = submitted_;
    }
    wait(last);
    bool has_thread = false;
    {
        Lock lock(mutex_);
        stopping_ = true;
        has_thread = has_thread_;
    }
    changed_.notify_all();
    if (has_thread)
        pthread_join(thread_, nullptr);
    if (context_.is_lost())
        return;
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    for (const Event event : events_)
        context_.api.event_destroy(event);
    if (reference_)
        context_.api.event_destroy(reference_);
    context_.api.event_destroy(tail_);
    context_.api.stream_destroy(stream_);
    if (print_ring_)
        context_.api.host_free(print_ring_);
}

// --- fork ---

void CudaQueue::lock_for_fork() {
    mutex_.lock();
    completed_at_fork_ = completed();
}

bool CudaQueue::is_quiet() const { return pending_.empty() && !is_pumping_; }

void CudaQueue::forget_threads() {
    has_thread_ = false;
    context_.lose_in_child();
    // Pinned memory need not be there in the child, so the counter is not read.
    pushed_ = written_ = submitted_;
    lost_from_.store(completed_at_fork_ + 1);
    completed_.store(submitted_);
    word_ = &completed_;
    publish_at(completed_);
    flights_.clear();
}

// --- submission ---

driver::Timepoint CudaQueue::submit(Operation&& operation, const driver::Submission& submission) {
    operation.times = submission.times;
    bool waits_for_host = false;
    // Once for all calls below; not in the child of a fork.
    std::optional<CudaContext::Current> current;
    if (!context_.is_lost())
        current.emplace(context_);
    for (const driver::Timepoint wait : submission.waits) {
        if (!wait.queue)
            continue;
        if (wait.queue == this) {
            operation.own_waits.push_back(wait.value);
        } else if (!wait.is_complete() && !order_after(wait, operation)) {
            operation.waits.push_back(wait);
            waits_for_host = true;
        } else if (wait.queue->status(wait.value) != Status::success) {
            // What was given to a stream has failed by now, or else fails with the whole context.
            operation.has_failed_wait = true;
        }
    }
    Lock lock(mutex_);
    operation.value = ++submitted_;
    if (context_.is_lost()) {
        abandon();
    } else if (waits_for_host || is_pumping_ || !pending_.empty() || needs_host(operation)) {
        pending_.push_back(std::move(operation));
        return {this, submitted_};
    } else {
        push(operation);
    }
    return {this, submitted_};
}

// True when an event orders this queue's stream after `wait`.
bool CudaQueue::order_after(driver::Timepoint wait, Operation& operation) {
    if (typeid(*wait.queue) != typeid(CudaQueue))
        return false;
    const std::optional<Event> event = static_cast<CudaQueue*>(wait.queue)->event_after(wait.value);
    if (event && *event)
        operation.events.push_back(*event);
    return event.has_value();
}

std::optional<Event> CudaQueue::event_after(uint64_t value) {
    Lock lock(mutex_);
    if (completed() >= value)
        return nullptr;
    if (pushed_ < value || context_.is_lost())
        return std::nullopt;
    // What waits for the operation must not be seen to complete before it: flights are published by the host.
    if (!flights_.empty() && flights_.front().value <= value)
        return std::nullopt;
    if (tail_value_ < value) {
        const CudaContext::Current current(context_);
        write_counter();
        if (const Code code = context_.api.event_record(tail_, stream_)) {
            note(value, code, "cuEventRecord");
            return std::nullopt;
        }
        tail_value_ = pushed_;
    }
    return tail_;
}

// False, and its failure is noted, when something that it waits for has failed. All of that has been pushed or is complete.
bool CudaQueue::may_execute(const Operation& operation) {
    bool may = !operation.has_failed_wait;
    for (const uint64_t value : operation.own_waits)
        may = may && failed_.status(value) == Status::success;
    if (!may)
        failed_.note(operation.value, Status::exec_status_error_for_events_in_wait_list);
    return may;
}

driver::Timepoint CudaQueue::marker(const driver::Submission& submission) {
    return submit({.work = MarkerWork{}}, submission);
}

driver::Timepoint CudaQueue::call(const driver::HostOperation& operation, const driver::Submission& submission) {
    return submit({.work = operation}, submission);
}

driver::Timepoint CudaQueue::copy(const driver::CopyOperation& operation, const driver::Submission& submission) {
    return submit({.work = operation}, submission);
}

driver::Timepoint CudaQueue::fill(const driver::FillOperation& operation, const driver::Submission& submission) {
    return submit(
        {.work =
             FillWork{operation.address.value, operation.size, {operation.pattern.begin(), operation.pattern.end()}}},
        submission);
}

driver::Timepoint CudaQueue::launch(const driver::LaunchOperation& operation, const driver::Submission& submission) {
    const auto& kernel = static_cast<const CudaKernel&>(*operation.kernel);
    return submit({.work = LaunchWork{&kernel, kernel.parameter_of(operation), kernel.dynamic_bytes_of(operation)}},
                  submission);
}

// --- the timeline ---

void CudaQueue::flush() {
    Lock lock(mutex_);
    if (context_.is_lost())
        return abandon();
    if (wanted_ == submitted_ && written_ == submitted_ && flights_.empty())
        return;
    wanted_ = submitted_;
    write_counter();
    if ((pending_.empty() && flights_.empty()) || completed() >= submitted_)
        return;
    if (start_thread()) {
        changed_.notify_all();
        return;
    }
    // Without a thread, the caller does the host's part.
    while (!pending_.empty() && !is_pumping_)
        pump_one();
}

void CudaQueue::wait(uint64_t value) {
    {
        Lock lock(mutex_);
        while (pushed_ < value && completed() < value) {
            if (context_.is_lost())
                abandon();
            else if (is_pumping_)
                changed_.wait(mutex_);
            else
                pump_one();
        }
        if (completed() >= value)
            return;
        write_counter();
    }
    poll(value);
}

Status CudaQueue::status(uint64_t value) const {
    if (value >= lost_from_.load(std::memory_order_acquire))
        return Status::out_of_resources;
    Lock lock(mutex_);
    return failed_.status(value);
}

// --- failures ---

void CudaQueue::note(uint64_t value, Code code, const char* what) {
    if (code == code_success)
        return;
    if (is_fatal(code)) {
        context_.lose(what, code);
        return abandon();
    }
    failed_.note(value, context_.api.error(code, what).status());
}

void CudaQueue::lose(const char* what, Code code) {
    context_.lose(what, code);
    Lock lock(mutex_);
    abandon();
}

// The GPU is lost: everything that has not completed fails now. An operation that the host is executing ends by itself.
void CudaQueue::abandon() {
    uint64_t expected = std::numeric_limits<uint64_t>::max();
    lost_from_.compare_exchange_strong(expected, completed() + 1);
    pending_.clear();
    for (const Flight& flight : flights_)
        if (flight.times) {
            flight.times->start(devices::now_ns());
            flight.times->end(devices::now_ns());
        }
    flights_.clear();
    pushed_ = written_ = submitted_;
    word_->store(submitted_, std::memory_order_release);
    changed_.notify_all();
}

}  // namespace polder::cuda
