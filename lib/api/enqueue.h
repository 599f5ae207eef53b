// The common part of all clEnqueue* entry points: queue, wait list, command, event.
#pragma once

#include "entry.h"

#include <runtime/queue.h>

#include <utility>

namespace polder::api {

enum class Blocking : uint8_t { no, yes };

inline Blocking blocking_if(cl_bool blocking) { return blocking ? Blocking::yes : Blocking::no; }

class EnqueueCall {
public:
    // Checks queue and wait list. CL_INVALID_COMMAND_QUEUE, CL_INVALID_EVENT_WAIT_LIST, CL_INVALID_CONTEXT.
    static Result<EnqueueCall> check(cl_command_queue handle, cl_uint count, const cl_event* list, cl_event* event) {
        POLDER_ASSIGN(queue, from_handle<runtime::Queue>(handle));
        EnqueueCall call{*queue, event};
        if (count != 0 || list)
            POLDER_TRY(add_wait_list(queue->context(), count, list, call.events_));
        return call;
    }

    // A call that records the command instead of enqueueing it: for the clCommand*KHR entry points, which check the same arguments.
    // `recorded` becomes the operation, or null when the command executes nothing.
    static EnqueueCall recording(runtime::Queue& queue, Ref<const runtime::RecordedOperation>& recorded) {
        EnqueueCall call{queue, nullptr};
        call.recorded_ = &recorded;
        return call;
    }

    [[nodiscard]] bool is_recorded() const { return recorded_ != nullptr; }
    [[nodiscard]] runtime::Queue& queue() const { return *queue_; }
    [[nodiscard]] runtime::Context& context() const { return queue_->context(); }

    // check_none_failed, of the wait list.
    [[nodiscard]] Result<void> check_wait_list() const { return check_none_failed(events_.view()); }

    // Enqueues, waits when blocking, and gives the application its event.
    template <class Command>
    [[nodiscard]] Result<void>
    enqueue(cl_command_type type, Command&& command, Blocking blocking = Blocking::no,
            runtime::EnqueueRequest::Ordering ordering = runtime::EnqueueRequest::Ordering::command) const {
        if (recorded_) [[unlikely]] {
            *recorded_ = command.record();
            return {};
        }
        using Want = runtime::EnqueueRequest::WantEvent;
        const bool wants_event = event_place_ || blocking == Blocking::yes;
        POLDER_ASSIGN(event, queue_->enqueue({type, events_.view(), wants_event ? Want::yes : Want::no, ordering},
                                             std::forward<Command>(command)));
        if (blocking == Blocking::yes) {
            event->wait();
            if (const cl_int status = event->status(); status < 0)
                return fail(static_cast<Status>(status));
        }
        if (!event_place_)
            return {};
        return give_event(std::move(event), event_place_);
    }

    // Enqueues by `make(request)`, which returns the event, and gives it to the application.
    template <class Make>
    [[nodiscard]] Result<void> enqueue_by(cl_command_type type, Make&& make) const {
        using Want = runtime::EnqueueRequest::WantEvent;
        POLDER_ASSIGN(event, make(runtime::EnqueueRequest{type, events_.view(), event_place_ ? Want::yes : Want::no}));
        if (!event_place_)
            return {};
        return give_event(std::move(event), event_place_);
    }

private:
    EnqueueCall(runtime::Queue& queue, cl_event* event_place) : queue_(&queue), event_place_(event_place) {}

    runtime::Queue* queue_;
    EventList events_;
    cl_event* event_place_;
    Ref<const runtime::RecordedOperation>* recorded_ = nullptr;  // null: the command is enqueued
};

}  // namespace polder::api
