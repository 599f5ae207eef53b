// ProxyQueue: creation and destruction, events for waits, the timeline, failures. See also proxy_queue_push.cpp and proxy_queue_host.cpp.
#include <base/log.h>

#include <algorithm>
#include <host/clock.h>
#include <proxy/proxy_queue.h>
#include <typeinfo>

namespace polder::proxy {
namespace {

constexpr uint32_t launches_with_event_after_wait = 256;

}  // namespace

Result<std::unique_ptr<driver::Queue>> ProxyQueue::create(ForeignContext& context, ProxyMemory& memory) {
    if (context.is_lost())
        return fail(Status::out_of_resources, context.name + " is lost");
    POLDER_ASSIGN(handle, context.create_queue(0));
    try {
        return std::unique_ptr<driver::Queue>(new ProxyQueue(context, memory, handle));
    } catch (...) {
        context.cl.clReleaseCommandQueue(handle);
        throw;
    }
}

ProxyQueue::~ProxyQueue() {
    finish();
    if (!context_.may_release())
        return;
    context_.cl.clReleaseCommandQueue(handle_);
    if (unprofiled_)
        context_.cl.clReleaseCommandQueue(unprofiled_);
}

driver::Timepoint ProxyQueue::launch(const driver::LaunchOperation& operation, const driver::Submission& submission) {
    LaunchWork work = ProxyKernel::work_of(operation);
    if (!submission.times && !work.kernel->has_images()) {
        const Lock lock(mutex_);
        if (may_push_at_once(submission.waits) && push_in_run(work, submission.waits))
            return {this, submitted_};
    }
    return submit_work(std::move(work), submission);
}

// --- events for waits ---

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
        try {
            operation.events.reserve(operation.events.size() + 1);
            operation.after.push_back(wait);
        } catch (...) {
            release(*event);
            throw;
        }
        operation.events.push_back(*event);
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
    if (flights_.empty() || value < flights_.front().first_value)
        return nullptr;
    size_t index = index_of(std::min(value, flights_.back().value));
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

size_t ProxyQueue::index_of(uint64_t value) const {
    return static_cast<size_t>(std::ranges::lower_bound(flights_, value, {}, &Flight::value) - flights_.begin());
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

void ProxyQueue::flush_commands() {
    if (is_flushed_ || context_.is_lost())
        return;
    is_flushed_ = true;
    if (const cl_int code = context_.cl.clFlush(handle_))
        context_.lose("clFlush", code);
}

bool ProxyQueue::needs_host(const Operation& operation) const {
    using Place = driver::CopyOperation::Place;
    if (std::holds_alternative<driver::HostOperation>(operation.work))
        return true;
    const auto* const copy = std::get_if<driver::CopyOperation>(&operation.work);
    return copy && copy->from.place == Place::host && copy->to.place == Place::host;
}

// --- the timeline ---

void ProxyQueue::wait(uint64_t value) {
    while (push_up_to(value)) {
        Ending ending;
        {
            const Lock lock(mutex_);
            if (completed() >= value)
                return;
            if (context_.is_lost())
                return abandon();
            ending = ending_of(value);
        }
        wait_for(ending);
        publish_up_to(value);
    }
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
    if (flights_.empty() || value < flights_.front().first_value)
        return failures_.status(value) != Status::success;
    const size_t index = index_of(value);
    return index < flights_.size() && flights_[index].status != Status::success;
}

void ProxyQueue::release(cl_event event) {
    if (event && context_.may_release())
        context_.cl.clReleaseEvent(event);
}

void ProxyQueue::release_events(Operation& operation) {
    for (const cl_event event : operation.events)
        release(event);
}

void ProxyQueue::forget_pushed(Where where) {
    if (where == Where::here)
        for (const Flight& flight : flights_) {
            release(flight.first);
            release(flight.last);
            devices::set_times(flight.times, devices::now_ns());
        }
    flights_.clear();
}

}  // namespace polder::proxy
