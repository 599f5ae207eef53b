// Submission, the timeline, failures, and the queue's life. See proxy_queue_push.cpp and proxy_queue_host.cpp.
#include <base/log.h>

#include <algorithm>
#include <host/clock.h>
#include <proxy/proxy_queue.h>
#include <typeinfo>

namespace polder::proxy {
namespace {

constexpr uint32_t launches_with_event_after_wait = 256;

void set_times(driver::OperationTimes* times, uint64_t ns) {
    if (!times)
        return;
    times->start(ns);
    times->end(ns);
}

} // namespace

Result<std::unique_ptr<driver::Queue>> ProxyQueue::create(ForeignContext& context, ProxyMemory& memory) {
    if (context.is_lost())
        return fail(Status::out_of_resources, context.name + " is lost");
    POLDER_ASSIGN(handle, context.create_queue(0));
    return std::unique_ptr<driver::Queue>(new ProxyQueue(context, memory, handle));
}

ProxyQueue::~ProxyQueue() {
    uint64_t last = 0;
    {
        const Lock lock(mutex_);
        last = submitted_;
    }
    wait(last);
    bool has_thread = false;
    {
        const Lock lock(mutex_);
        stopping_ = true;
        has_thread = has_thread_;
    }
    wake_.notify_one();
    if (has_thread)
        pthread_join(thread_, nullptr);
    if (!context_.may_release())
        return;
    context_.cl.clReleaseCommandQueue(handle_);
    if (unprofiled_)
        context_.cl.clReleaseCommandQueue(unprofiled_);
}

// --- fork ---

void ProxyQueue::lock_for_fork() {
    mutex_.lock();
    completed_at_fork_ = completed();
}

bool ProxyQueue::is_quiet() const { return pending_.empty() && !is_pumping_ && flights_.empty(); }

// The implementation's threads are not in the child, and it is not called there any more.
void ProxyQueue::forget_threads() {
    has_thread_ = thread_sleeps_ = false;
    new (&wake_) ConditionVariable;  // threads of the parent may have waited on the old ones
    new (&changed_) ConditionVariable;
    context_.lose_in_child();
    lost_from_.store(completed_at_fork_ + 1);
    flights_.clear();
    pushed_ = submitted_;
    completed_.store(submitted_);
}

// --- submission ---

driver::Timepoint ProxyQueue::submit(Operation&& operation, const driver::Submission& submission) {
    operation.times = submission.times;
    for (const driver::Timepoint wait : submission.waits) {
        if (!wait.queue)
            continue;
        if (wait.queue == this)
            operation.own_waits.push_back(wait.value);
        else if (!wait.is_complete() && !order_after(wait, operation))
            operation.waits.push_back(wait);
        else
            operation.has_failed_wait |= wait.queue->status(wait.value) != Status::success;
    }
    const Lock lock(mutex_);
    operation.value = ++submitted_;
    if (context_.is_lost())
        abandon();
    else if (!operation.waits.empty() || is_pumping_ || !pending_.empty() || needs_host(operation))
        pending_.push_back(std::move(operation));
    else
        push(operation);
    return {this, submitted_};
}

bool ProxyQueue::order_after(driver::Timepoint wait, Operation& operation) {
    if (typeid(*wait.queue) != typeid(ProxyQueue))
        return false;
    auto& other = *static_cast<ProxyQueue*>(wait.queue);
    // Events belong to a context.
    if (&other.context_ != &context_)
        return false;
    const std::optional<cl_event> event = other.event_after(wait.value);
    if (!event)
        return false;
    if (*event) {
        operation.events.push_back(*event);
        operation.after.push_back(wait);
    }
    return true;
}

std::optional<cl_event> ProxyQueue::event_after(uint64_t value) {
    const Lock lock(mutex_);
    if (completed() >= value)
        return nullptr;
    if (pushed_ < value || context_.is_lost())
        return std::nullopt;
    const cl_event event = event_at(value);
    if (!event)
        return std::nullopt;
    // A queue whose event another one waits for must be flushed.
    flush_commands();
    return event;
}

cl_event ProxyQueue::event_at(uint64_t value) {
    if (flights_.empty() || value < flights_.front().value)
        return nullptr;
    size_t index = std::min<size_t>(value - flights_.front().value, flights_.size() - 1);
    while (flights_[index].ends == Flight::Ends::with_the_one_before)
        if (index-- == 0)
            return nullptr;
    if (!flights_[index].last)
        launches_with_event_ = launches_with_event_after_wait;
    const cl_event event = event_behind(index);
    if (event)
        context_.cl.clRetainEvent(event);
    return event;
}

cl_event ProxyQueue::event_behind(size_t index) {
    for (size_t i = index; i < flights_.size(); ++i)
        if (flights_[i].last)
            return flights_[i].last;
    Flight& newest = flights_.back();
    const cl_int code = context_.cl.clEnqueueMarkerWithWaitList(handle_, 0, nullptr, &newest.last);
    if (code != CL_SUCCESS) {
        newest.last = nullptr;
        static_cast<void>(report(code, "clEnqueueMarkerWithWaitList"));
        return nullptr;
    }
    newest.ends = Flight::Ends::with_its_event;
    launches_without_event_ = 0;
    is_flushed_ = false;
    return newest.last;
}

bool ProxyQueue::may_execute(const Operation& operation) const {
    bool may = !operation.has_failed_wait;
    for (const uint64_t value : operation.own_waits)
        may = may && !has_failed(value);
    return may;
}

void ProxyQueue::flush_commands() {
    if (is_flushed_ || context_.is_lost())
        return;
    is_flushed_ = true;
    if (const cl_int code = context_.cl.clFlush(handle_))
        context_.lose("clFlush", code);
}

bool ProxyQueue::needs_host(const Operation& operation) {
    using Place = driver::CopyOperation::Place;
    if (std::holds_alternative<driver::HostOperation>(operation.work))
        return true;
    const auto* const copy = std::get_if<driver::CopyOperation>(&operation.work);
    return copy && copy->from.place == Place::host && copy->to.place == Place::host;
}

driver::Timepoint ProxyQueue::marker(const driver::Submission& submission) {
    Operation operation;
    operation.work = MarkerWork{};
    return submit(std::move(operation), submission);
}

driver::Timepoint ProxyQueue::call(const driver::HostOperation& host, const driver::Submission& submission) {
    Operation operation;
    operation.work = host;
    return submit(std::move(operation), submission);
}

driver::Timepoint ProxyQueue::copy(const driver::CopyOperation& copy, const driver::Submission& submission) {
    Operation operation;
    operation.work = copy;
    return submit(std::move(operation), submission);
}

driver::Timepoint ProxyQueue::fill(const driver::FillOperation& fill, const driver::Submission& submission) {
    Operation operation;
    operation.work = FillWork{fill.address, fill.size, {fill.pattern.begin(), fill.pattern.end()}};
    return submit(std::move(operation), submission);
}

driver::Timepoint ProxyQueue::launch(const driver::LaunchOperation& launch, const driver::Submission& submission) {
    Operation operation;
    operation.work = ProxyKernel::work_of(launch);
    return submit(std::move(operation), submission);
}

// --- the timeline ---

void ProxyQueue::flush() {
    {
        const Lock lock(mutex_);
        if (context_.is_lost())
            return abandon();
        if (completed() >= submitted_)
            return;
        wanted_ = submitted_;
        flush_commands();
        if (start_thread()) {
            if (thread_sleeps_ || !pending_.empty())
                wake_.notify_one();
            return;
        }
    }
    // Without a thread, the caller does its part.
    uint64_t last = 0;
    {
        const Lock lock(mutex_);
        last = submitted_;
    }
    wait(last);
}

void ProxyQueue::wait(uint64_t value) {
    for (;;) {
        Ending ending;
        {
            const Lock lock(mutex_);
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
            if (context_.is_lost())
                return abandon();
            ending = ending_of(value);
        }
        wait_for(ending);
        publish(value);
    }
}

Status ProxyQueue::status(uint64_t value) const {
    if (value >= lost_from_.load(std::memory_order_acquire))
        return Status::out_of_resources;
    const Lock lock(mutex_);
    return failures_.status(value);
}

// --- failures ---

Status ProxyQueue::report(cl_int code, const char* what) {
    if (code == CL_SUCCESS)
        return Status::success;
    const Error error = context_.error(code, what);
    POLDER_LOG(driver, "%s", std::string(error.detail()).c_str());
    context_.lose(what, code);
    return error.status();
}

bool ProxyQueue::has_failed(uint64_t value) const {
    if (flights_.empty() || value < flights_.front().value)
        return failures_.status(value) != Status::success;
    const uint64_t index = value - flights_.front().value;
    return index < flights_.size() && flights_[index].status != Status::success;
}

void ProxyQueue::release(cl_event event) {
    if (event && context_.may_release())
        context_.cl.clReleaseEvent(event);
}

// The device is lost: everything that has not completed fails now. An operation that the host is executing ends by itself.
void ProxyQueue::abandon() {
    uint64_t expected = std::numeric_limits<uint64_t>::max();
    lost_from_.compare_exchange_strong(expected, completed() + 1, std::memory_order_release);
    const uint64_t now_ns = devices::now_ns();
    for (const Operation& operation : pending_) {
        for (size_t i = 0; i < operation.events.size(); ++i)
            release(operation.events[i]);
        set_times(operation.times, now_ns);
    }
    pending_.clear();
    for (const Flight& flight : flights_) {
        release(flight.first);
        release(flight.last);
        set_times(flight.times, now_ns);
    }
    flights_.clear();
    pushed_ = submitted_;
    completed_.store(submitted_, std::memory_order_release);
    changed_.notify_all();
}

}  // namespace polder::proxy
