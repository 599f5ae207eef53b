// The states of events, their callbacks, and ReadyList, which runs dependents without recursion.
#include <base/completion.h>
#include <runtime/context.h>
#include <runtime/event.h>
#include <runtime/queue.h>

#include <algorithm>
#include <utility>

namespace polder::runtime {

Event::Event(Ref<Queue> queue, cl_command_type type, Profiling profiling)
    : context_(queue->context()), queue_(std::move(queue)), type_(type) {
    if (profiling == Profiling::on) {
        times_ = make_ref<Times>();
        times_->queued_ns = queue_->device().driver().now_ns();
    }
}

Event::Event(Ref<Context> context) : context_(*context), kept_context_(std::move(context)), type_(CL_COMMAND_USER) {}

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

void Event::leave_pending(State state, ReadyList& ready) noexcept {
    std::vector<Ref<Dependent>> dependents;
    bool has_callbacks = false;
    {
        Lock lock(mutex_);
        state_.store(state, std::memory_order_release);
        dependents.swap(dependents_);
        has_callbacks = !callbacks_.empty();
        state_.notify_all();
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

void Event::resolve(driver::Timepoint timepoint, ReadyList& ready) noexcept {
    timepoint_ = timepoint;
    leave_pending(State::submitted, ready);
}

void Event::fail(cl_int status, ReadyList& ready) noexcept {
    error_ = status;
    leave_pending(State::failed, ready);
}

Result<void> Event::set_user_status(cl_int status) {
    ReadyList ready;
    {
        Lock lock(mutex_);
        if (std::exchange(user_status_set_, true))
            return polder::fail(Status::invalid_operation);
    }
    if (status == CL_COMPLETE)
        resolve({}, ready);
    else
        fail(status, ready);
    ready.run();
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
    state_.wait(State::pending, std::memory_order_acquire);
    if (is_submitted() && timepoint_.queue)
        timepoint_.queue->wait(timepoint_.value);
}

Result<void> Event::add_callback(cl_int status, Callback function, void* user) {
    POLDER_TRY(start_callback_thread());
    {
        Lock lock(mutex_);
        callbacks_.push_back({status, function, user, nullptr});
        // A user event counts as submitted from the beginning. All other callbacks of a pending event are called by leave_pending.
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

void Event::run_callbacks_when_complete() noexcept {
    const auto run = [](void* data) {
        const auto event = Ref<Event>::adopt(static_cast<Event*>(data));
        event->run_callbacks(CL_RUNNING);
        event->run_callbacks(CL_COMPLETE);
    };
    run_when_complete({&timepoint_, 1}, {run, Ref<Event>::share(this).detach()});
}

// The calls of callbacks on one thread. A callback may set a user event whose callback sets the next one, and so on. Up to `depth_max`, each is
// called from within the one before it, as an application may expect. Deeper ones are called one after the other, because the stack is finite.
class Event::Calls {
public:
    static void make(std::list<CallbackEntry>& due) noexcept {
        if (depth == depth_max) {
            innermost->due_.splice(innermost->due_.end(), due);
            return;
        }
        Calls calls(due);
        calls.run();
    }

private:
    explicit Calls(std::list<CallbackEntry>& due) noexcept : outer_(innermost) {
        due_.swap(due);
        innermost = this;
        ++depth;
    }
    ~Calls() {
        innermost = outer_;
        --depth;
    }
    void run() noexcept {
        while (!due_.empty()) {
            std::list<CallbackEntry> call;
            call.splice(call.end(), due_, due_.begin());
            const CallbackEntry& entry = call.front();
            entry.function(static_cast<cl_event>(entry.event->handle()), entry.reported, entry.user);
        }
    }

    static constexpr int depth_max = 64;
    static inline thread_local Calls* innermost = nullptr;
    static inline thread_local int depth = 0;

    Calls* outer_;
    std::list<CallbackEntry> due_;
};

// Statuses count down from CL_QUEUED (3) to CL_COMPLETE (0): callbacks for `reached` or an earlier status are due. Each
// callback gets the status for which it was registered, or the error.
void Event::run_callbacks(cl_int reached) noexcept {
    std::list<CallbackEntry> due;
    {
        Lock lock(mutex_);
        for (auto at = callbacks_.begin(); at != callbacks_.end();) {
            const auto entry = at++;
            if (entry->status >= reached)
                due.splice(due.end(), callbacks_, entry);
        }
    }
    const cl_int error = std::min(status(), CL_COMPLETE);
    for (CallbackEntry& entry : due) {
        entry.event = Ref<Event>::share(this);
        entry.reported = error < 0 ? error : entry.status;
    }
    Calls::make(due);
}

void ReadyList::drop() noexcept {
    while (take_first())
        ;
}

void ReadyList::append(Ref<Dependent> dependent) noexcept {
    Dependent* const appended = dependent.get();
    (last_ ? last_->next_ready_ : first_) = std::move(dependent);
    last_ = appended;
}

Ref<Dependent> ReadyList::take_first() noexcept {
    Ref<Dependent> taken = std::move(first_);
    if (taken)
        first_ = std::move(taken->next_ready_);
    if (!first_)
        last_ = nullptr;
    return taken;
}

void ReadyList::run_all() noexcept {
    while (const Ref<Dependent> dependent = take_first())
        dependent->run(*this);
}

}  // namespace polder::runtime
