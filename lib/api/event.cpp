// Events, user events, markers and barriers, profiling.
#include "enqueue.h"

#include <runtime/buffer_commands.h>
#include <runtime/event.h>
#include <runtime/queue.h>

#include <algorithm>

using namespace polder;
using namespace polder::runtime;

namespace polder::api {
namespace {

// Flushes when the command is not complete: an application that polls the status without clFlush must not poll forever.
cl_int polled_status(Event& event) {
    const cl_int status = event.status();
    if (status > CL_COMPLETE && event.is_submitted())
        event.timepoint().queue->flush();
    return status;
}

Result<void> get_event_info(cl_event handle, cl_event_info name, const Info& info) {
    POLDER_ASSIGN(event, from_handle<Event>(handle));
    switch (name) {
    case CL_EVENT_COMMAND_QUEUE:
        return info.value(handle_of<cl_command_queue>(event->has_several_queues() ? nullptr : event->queue()));
    case CL_EVENT_CONTEXT: return info.value(handle_of<cl_context>(&event->context()));
    case CL_EVENT_COMMAND_TYPE: return info.value<cl_command_type>(event->type());
    case CL_EVENT_COMMAND_EXECUTION_STATUS: return info.value<cl_int>(polled_status(*event));
    case CL_EVENT_REFERENCE_COUNT: return info.value<cl_uint>(event->api_references());
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

Result<void> get_profiling_info(cl_event handle, cl_profiling_info name, const Info& info) {
    POLDER_ASSIGN(event, from_handle<Event>(handle));
    // CL_PROFILING_INFO_NOT_AVAILABLE: the queue has no profiling, or the command is not complete.
    const Event::Times* times = event->times();
    if (!times || event->status() != CL_COMPLETE)
        return fail(Status::profiling_info_not_available);
    const uint64_t end_ns = std::max(times->operation.end_ns.load(), times->submit_ns);
    // For a command buffer on several queues, only the end is known.
    const uint64_t first_ns = event->has_several_queues() ? 0 : times->operation.start_ns.load();
    const uint64_t start_ns = std::clamp(first_ns, times->submit_ns, end_ns);
    switch (name) {
    case CL_PROFILING_COMMAND_QUEUED: return info.value<cl_ulong>(times->queued_ns);
    case CL_PROFILING_COMMAND_SUBMIT: return info.value<cl_ulong>(times->submit_ns);
    case CL_PROFILING_COMMAND_START: return info.value<cl_ulong>(start_ns);
    case CL_PROFILING_COMMAND_END:
    case CL_PROFILING_COMMAND_COMPLETE:
        return info.value<cl_ulong>(end_ns);  // the command is complete only after the blocks that it enqueued
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

// Flushes the driver queues of all events but the one that is waited for first: waiting for that one executes it on the
// calling thread, where a flush would wake another thread for the same work.
void start_all_but_the_first(std::span<Event* const> events) {
    const driver::Queue* first = nullptr;
    for (const Event* event : events) {
        if (!event->is_submitted() || event->timepoint().is_complete())
            continue;
        driver::Queue* const queue = event->timepoint().queue;
        if (!first)
            first = queue;
        else if (queue != first)
            queue->flush();
    }
}

Result<void> wait_for_events(cl_uint count, const cl_event* list) {
    // CL_INVALID_VALUE: num_events is 0 or event_list is null.
    if (count == 0 || !list)
        return fail(Status::invalid_value);
    POLDER_ASSIGN(events, checked_events(count, list, Status::invalid_event));
    // CL_INVALID_CONTEXT: the events are of different contexts.
    for (const Event* event : events)
        if (&event->context() != &events[0]->context())
            return fail(Status::invalid_context);
    start_all_but_the_first(events.view());
    bool failed = false;
    for (Event* event : events) {
        event->wait();
        failed |= event->status() < 0;
    }
    // CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST: the execution status of an event is negative.
    if (failed)
        return fail(Status::exec_status_error_for_events_in_wait_list);
    return {};
}

Result<void> enqueue_marker(cl_command_queue queue, cl_uint count, const cl_event* list, cl_event* event,
                            cl_command_type type, EnqueueRequest::Ordering ordering) {
    POLDER_ASSIGN(call, EnqueueCall::check(queue, count, list, event));
    return call.enqueue(type, MarkerCommand{}, Blocking::no, ordering);
}

}  // namespace
}  // namespace polder::api

using namespace polder::api;
using Ordering = EnqueueRequest::Ordering;

CL_API_ENTRY cl_event CL_API_CALL clCreateUserEvent(cl_context context, cl_int* errcode_ret) {
    return create<cl_event>(errcode_ret, [&]() -> Result<cl_event> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        return expose<cl_event>(make_ref<Event>(Ref<Context>::share(checked)));
    });
}

CL_API_ENTRY cl_int CL_API_CALL clSetUserEventStatus(cl_event event, cl_int execution_status) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Event>(event));
        // CL_INVALID_EVENT: event is not a user event.
        if (!checked->is_user())
            return fail(Status::invalid_event);
        // CL_INVALID_VALUE: execution_status is neither CL_COMPLETE nor negative.
        if (execution_status > CL_COMPLETE)
            return fail(Status::invalid_value);
        // Keeps the event, because a callback may release the application's last reference.
        const auto keep = Ref<Event>::share(checked);
        return keep->set_user_status(execution_status);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clRetainEvent(cl_event event) {
    return entry([&] { return retain<Event>(event); });
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseEvent(cl_event event) {
    return entry([&] { return release<Event>(event); });
}

CL_API_ENTRY cl_int CL_API_CALL clWaitForEvents(cl_uint num_events, const cl_event* event_list) {
    return entry([&] { return wait_for_events(num_events, event_list); });
}

CL_API_ENTRY cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info param_name, size_t param_value_size,
                                               void* param_value, size_t* param_value_size_ret) {
    return entry(
        [&] { return get_event_info(event, param_name, Info{param_value_size, param_value, param_value_size_ret}); });
}

CL_API_ENTRY cl_int CL_API_CALL clGetEventProfilingInfo(cl_event event, cl_profiling_info param_name,
                                                        size_t param_value_size, void* param_value,
                                                        size_t* param_value_size_ret) {
    return entry([&] {
        return get_profiling_info(event, param_name, Info{param_value_size, param_value, param_value_size_ret});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clSetEventCallback(cl_event event, cl_int command_exec_callback_type,
                                                   Event::Callback pfn_notify, void* user_data) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Event>(event));
        const bool known_type = command_exec_callback_type == CL_SUBMITTED ||
                                command_exec_callback_type == CL_RUNNING || command_exec_callback_type == CL_COMPLETE;
        // CL_INVALID_VALUE: pfn_notify is null, or the status is not CL_SUBMITTED, CL_RUNNING or CL_COMPLETE.
        if (!pfn_notify || !known_type)
            return fail(Status::invalid_value);
        const auto keep = Ref<Event>::share(checked);
        return keep->add_callback(command_exec_callback_type, pfn_notify, user_data);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint num_events,
                                                            const cl_event* list, cl_event* event) {
    return entry([&] { return enqueue_marker(queue, num_events, list, event, CL_COMMAND_MARKER, Ordering::marker); });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint num_events,
                                                             const cl_event* list, cl_event* event) {
    return entry([&] { return enqueue_marker(queue, num_events, list, event, CL_COMMAND_BARRIER, Ordering::barrier); });
}

// Deprecated since OpenCL 1.2: the forms without wait lists.

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMarker(cl_command_queue queue, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_TRY(from_handle<Queue>(queue));
        // CL_INVALID_VALUE: event is null.
        if (!event)
            return fail(Status::invalid_value);
        return enqueue_marker(queue, 0, nullptr, event, CL_COMMAND_MARKER, Ordering::marker);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWaitForEvents(cl_command_queue queue, cl_uint num_events,
                                                       const cl_event* list) {
    return entry([&]() -> Result<void> {
        POLDER_TRY(from_handle<Queue>(queue));
        // CL_INVALID_VALUE: num_events is 0 or event_list is null.
        if (num_events == 0 || !list)
            return fail(Status::invalid_value);
        POLDER_TRY(checked_events(num_events, list, Status::invalid_event));
        return enqueue_marker(queue, num_events, list, nullptr, CL_COMMAND_BARRIER, Ordering::barrier);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueBarrier(cl_command_queue queue) {
    return entry([&] { return enqueue_marker(queue, 0, nullptr, nullptr, CL_COMMAND_BARRIER, Ordering::barrier); });
}
