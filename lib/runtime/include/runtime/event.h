// Event: refers to a command's timepoint, or has the status of a user event.
//
// States: pending (not submitted, because the command waits, directly or through others, for a user event) -> submitted (has a
// timepoint; running and complete are read from the driver's timeline) or failed (a negative status).
// Every command that has to wait has an event; other commands have one only when the application requested it.
//
// Any thread may call any function.
#pragma once

#include <base/mutex.h>
#include <base/recycled.h>
#include <runtime/handle.h>

#include <CL/cl.h>
#include <atomic>
#include <list>
#include <polder/driver.h>
#include <vector>

namespace polder::runtime {

class Context;
class Queue;
class Event;

class ReadyList;

// An object that is called when an event leaves the state `pending`. Its functions must not fail, or later commands would never run.
class Dependent : public RefCounted {
public:
    // Called once per event it was added to, without locks. `failed`: the event failed. Appends the dependents that become ready to
    // `ready`, so that long chains are resolved without recursion.
    virtual void on_resolved(bool failed, ReadyList& ready) noexcept = 0;
    // Called by ReadyList::run after this dependent was appended. When it resolves its own event, that may append to `ready`.
    virtual void run(ReadyList& ready) noexcept = 0;

private:
    friend class ReadyList;
    Ref<Dependent> next_ready_;
};

// Dependents to run, in order of appending. Linked through the dependents, so that appending needs no memory: each becomes
// ready once. One thread.
class ReadyList {
public:
    ReadyList() = default;
    ReadyList(const ReadyList&) = delete;
    ReadyList& operator=(const ReadyList&) = delete;
    ~ReadyList() {
        if (first_) [[unlikely]]
            drop();
    }
    void append(Ref<Dependent> dependent) noexcept;
    // Runs the dependents of the list, and those that become ready meanwhile, without recursion.
    void run() noexcept {
        if (first_) [[unlikely]]
            run_all();
    }

private:
    void run_all() noexcept;
    void drop() noexcept;
    [[nodiscard]] Ref<Dependent> take_first() noexcept;

    Ref<Dependent> first_;
    Dependent* last_ = nullptr;
};

class Event final : public Object, public Recycled<Event> {
public:
    static constexpr Kind kind = Kind::event;
    static constexpr Status invalid = Status::invalid_event;

    using Callback = void(CL_CALLBACK*)(cl_event event, cl_int status, void* user);
    enum class Profiling : uint8_t { off, on };

    // The event of a command in `queue`.
    Event(Ref<Queue> queue, cl_command_type type, Profiling profiling);
    // A user event.
    explicit Event(Ref<Context> context);
    ~Event() override;

    [[nodiscard]] Context& context() const { return context_; }
    [[nodiscard]] Queue* queue() const { return queue_.get(); }
    [[nodiscard]] cl_command_type type() const { return type_; }
    [[nodiscard]] bool is_user() const { return type_ == CL_COMMAND_USER; }
    // For the event of a command buffer that executes on several queues: the last of its commands runs on queue(). Called before
    // other threads can access the event.
    void note_several_queues() { has_several_queues_ = true; }
    [[nodiscard]] bool has_several_queues() const { return has_several_queues_; }

    // CL_QUEUED, CL_SUBMITTED, CL_RUNNING, CL_COMPLETE or a negative error. For a user event,
    // CL_SUBMITTED until its status is set.
    [[nodiscard]] cl_int status() const;
    [[nodiscard]] bool is_pending() const { return state_.load(std::memory_order_acquire) == State::pending; }
    [[nodiscard]] bool is_submitted() const { return state_.load(std::memory_order_acquire) == State::submitted; }
    [[nodiscard]] bool is_failed() const { return state_.load(std::memory_order_acquire) == State::failed; }
    // Only valid in the state `submitted`.
    [[nodiscard]] driver::Timepoint timepoint() const { return timepoint_; }

    // Ends the state `pending`, once. Dependents that become ready are appended to `ready`.
    void resolve(driver::Timepoint timepoint, ReadyList& ready) noexcept;
    // The same for an event that no other thread has seen yet: nothing depends on it.
    void resolve_unseen(driver::Timepoint timepoint) noexcept {
        timepoint_ = timepoint;
        state_.store(State::submitted, std::memory_order_release);
    }
    void fail(cl_int status, ReadyList& ready) noexcept;
    // For user events: invalid_operation when the status was set before. Runs the dependents that became ready.
    [[nodiscard]] Result<void> set_user_status(cl_int status);

    // Returns true when `dependent` will be called; false when the event is not pending any more.
    [[nodiscard]] bool add_dependent(Ref<Dependent> dependent);

    // Blocks until the event is complete or failed. Flushes the queues that it waits for.
    void wait();

    // CL_SUBMITTED, CL_RUNNING or CL_COMPLETE; `function` is called with that status, or the error.
    // Callbacks run without locks: on the thread that noticed the status, or on the callback thread (base/completion.h).
    // out_of_resources when the callback thread cannot be started.
    [[nodiscard]] Result<void> add_callback(cl_int status, Callback function, void* user);

    // Profiling times in nanoseconds; null without profiling. An object of their own, because the queue keeps them for the
    // driver that writes them, and the event keeps the queue.
    struct Times final : RefCounted {
        uint64_t queued_ns = 0;
        uint64_t submit_ns = 0;
        driver::OperationTimes operation;
    };
    [[nodiscard]] Times* times() const { return times_.get(); }

private:
    enum class State : int32_t { pending, submitted, failed };  // 32 bits, so that std::atomic::wait uses a futex on it
    struct CallbackEntry {
        cl_int status;
        Callback function;
        void* user;
        // Set when the callback is due.
        Ref<Event> event;
        cl_int reported = CL_COMPLETE;
    };
    class Calls;
    void leave_pending(State state, ReadyList& ready) noexcept;
    void run_callbacks(cl_int reached) noexcept;
    void run_callbacks_when_complete() noexcept;

    Context& context_;
    const Ref<Context> kept_context_;  // set for a user event; the queue of other events keeps the context
    const Ref<Queue> queue_;
    const cl_command_type type_;
    bool has_several_queues_ = false;
    std::atomic<State> state_{State::pending};
    driver::Timepoint timepoint_;
    cl_int error_ = CL_SUCCESS;
    Ref<Times> times_;

    mutable Mutex mutex_;
    std::vector<Ref<Dependent>> dependents_ POLDER_GUARDED_BY(mutex_);
    std::list<CallbackEntry> callbacks_ POLDER_GUARDED_BY(mutex_);  // moved without allocating
    bool user_status_set_ POLDER_GUARDED_BY(mutex_) = false;
};

}  // namespace polder::runtime
