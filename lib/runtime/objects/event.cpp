#include <base/completion.h>
#include <runtime/context.h>
#include <runtime/event.h>
#include <runtime/queue.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace polder::runtime {

Event::Event(Ref<Context> context, Ref<Queue> queue, cl_command_type type, Profiling profiling)
    : context_(std::move(context)), queue_(std::move(queue)), type_(type) {
    if (profiling == Profiling::on) {
        times_ = make_ref<Times>();
        times_->queued_ns = queue_->device().driver().now_ns();
    }
}

Event::~Event() = default;

cl_int Event::status() const {
    switch (state_.load(std::memory_order_acquire)) {
    case State::pending: return is_user() ? CL_SUBMITTED : CL_QUEUED;
    case State::failed: return error_;
    case State::submitted: break;
    }
    if (timepoint_.is_complete())
        return timepoint_.queue ? static_cast<cl_int>(timepoint_.queue->status(timepoint_.value)) : CL_COMPLETE;
    return timepoint_.queue->started() >= timepoint_.value ? CL_RUNNING : CL_SUBMITTED;
}

void Event::leave_pending(State state, std::vector<Ref<Dependent>>& ready) {
    std::vector<Ref<Dependent>> dependents;
    bool has_callbacks = false;
    {
        Lock lock(mutex_);
        state_.store(state, std::memory_order_release);
        dependents.swap(dependents_);
        has_callbacks = !callbacks_.empty();
        resolved_.notify_all();
    }
    for (const Ref<Dependent>& dependent : dependents)
        dependent->on_resolved(state == State::failed, ready);
    if (!has_callbacks)
        return;
    if (state == State::failed) {
        run_callbacks(CL_COMPLETE);
    } else {
        run_callbacks(CL_SUBMITTED);
        run_callbacks_when_complete();
    }
}

void Event::resolve(driver::Timepoint timepoint, std::vector<Ref<Dependent>>& ready) {
    timepoint_ = timepoint;
    leave_pending(State::submitted, ready);
}

void Event::fail(cl_int status, std::vector<Ref<Dependent>>& ready) {
    error_ = status;
    leave_pending(State::failed, ready);
}

Result<void> Event::set_user_status(cl_int status) {
    std::vector<Ref<Dependent>> ready;
    {
        Lock lock(mutex_);
        if (std::exchange(user_status_set_, true))
            return polder::fail(Status::invalid_operation);
    }
    if (status == CL_COMPLETE)
        resolve({}, ready);
    else
        fail(status, ready);
    run_ready(ready);
    return {};
}

bool Event::add_dependent(Ref<Dependent> dependent) {
    Lock lock(mutex_);
    if (!is_pending())
        return false;
    dependents_.push_back(std::move(dependent));
    return true;
}

void Event::wait() {
    {
        Lock lock(mutex_);
        while (is_pending())
            resolved_.wait(mutex_);
    }
    if (is_submitted() && timepoint_.queue)
        timepoint_.queue->wait(timepoint_.value);
}

Result<void> Event::add_callback(cl_int status, Callback function, void* user) {
    POLDER_TRY(start_callback_thread());
    {
        Lock lock(mutex_);
        callbacks_.push_back({status, function, user});
        // A user event is submitted from the beginning. leave_pending calls all others.
        if (is_pending() && !(is_user() && status == CL_SUBMITTED))
            return {};
    }
    if (is_failed()) {
        run_callbacks(CL_COMPLETE);
        return {};
    }
    run_callbacks(CL_SUBMITTED);
    if (!is_pending())
        run_callbacks_when_complete();
    return {};
}

void Event::run_callbacks_when_complete() {
    const auto run = [](void* data) {
        const auto event = Ref<Event>::adopt(static_cast<Event*>(data));
        event->run_callbacks(CL_RUNNING);
        event->run_callbacks(CL_COMPLETE);
    };
    run_when_complete({&timepoint_, 1}, {run, Ref<Event>::share(this).detach()});
}

// Statuses count down from CL_QUEUED (3) to CL_COMPLETE (0): what waits for `reached` or an earlier one is due. Each
// gets the status that it waited for, or the error.
void Event::run_callbacks(cl_int reached) {
    std::vector<CallbackEntry> due;
    {
        Lock lock(mutex_);
        const auto is_due = [&](const CallbackEntry& c) { return c.status >= reached; };
        std::copy_if(callbacks_.begin(), callbacks_.end(), std::back_inserter(due), is_due);
        std::erase_if(callbacks_, is_due);
    }
    const cl_int error = std::min(status(), CL_COMPLETE);
    for (const CallbackEntry& entry : due)
        entry.function(static_cast<cl_event>(handle()), error < 0 ? error : entry.status, entry.user);
}

void run_ready(std::vector<Ref<Dependent>>& ready) {
    while (!ready.empty()) {
        std::vector<Ref<Dependent>> batch;
        batch.swap(ready);
        for (const Ref<Dependent>& dependent : batch)
            dependent->run(ready);
    }
}

} // namespace polder::runtime
