#include "entry.h"

#include <atomic>
#include <string>

namespace polder::api {

cl_int report(const Error& error, const char* function) {
    const std::string_view detail = error.detail();
    POLDER_LOG(api, "%s: %d%s%.*s", function, static_cast<int>(error.status()), detail.empty() ? "" : ": ",
               static_cast<int>(detail.size()), detail.data());
    static_cast<void>(detail);
    static_cast<void>(function);
    return static_cast<cl_int>(error.status());
}

cl_int report_cut_off(const char* function) {
    static std::atomic<bool> is_reported{false};
    if (!is_reported.exchange(true))
        log::line(log::Category::error,
                  "%s: this process was forked while its parent executed OpenCL commands or calls; it cannot use "
                  "OpenCL. Fork after clFinish, or before the first use of OpenCL, or start a program instead",
                  function);
    return CL_OUT_OF_RESOURCES;
}

Result<void> Info::string(std::string_view answer) const {
    const size_t size = answer.size() + 1;
    // CL_INVALID_VALUE: param_value_size is less than the size of the result.
    if (value_ && capacity_ < size)
        return fail(Status::invalid_value);
    if (value_) {
        answer.copy(static_cast<char*>(value_), answer.size());
        static_cast<char*>(value_)[answer.size()] = '\0';
    }
    if (size_ret_)
        *size_ret_ = size;
    return {};
}

namespace {

Result<void> add_checked(cl_uint count, const cl_event* list, Status invalid, EventList& events) {
    events.reserve(count);
    for (cl_uint i = 0; i < count; ++i) {
        // CL_INVALID_EVENT_WAIT_LIST, or the caller's error code: an entry of the list is not an event.
        const Result<runtime::Event*> event = from_handle<runtime::Event>(list[i]);
        if (!event)
            return fail(invalid);
        events.push_back(*event);
    }
    return {};
}

}  // namespace

Result<EventList> checked_events(cl_uint count, const cl_event* list, Status invalid) {
    EventList events;
    POLDER_TRY(add_checked(count, list, invalid, events));
    return events;
}

Result<void> add_wait_list(const runtime::Context& context, cl_uint count, const cl_event* list, EventList& events) {
    // CL_INVALID_EVENT_WAIT_LIST: num_events_in_wait_list is 0 and event_wait_list is not null, or the other way round.
    if ((count == 0) != (list == nullptr))
        return fail(Status::invalid_event_wait_list);
    POLDER_TRY(add_checked(count, list, Status::invalid_event_wait_list, events));
    // CL_INVALID_CONTEXT: an event and the queue are of different contexts.
    for (const runtime::Event* event : events)
        if (&event->context() != &context)
            return fail(Status::invalid_context);
    return {};
}

Result<EventList> wait_list(const runtime::Context& context, cl_uint count, const cl_event* list) {
    EventList events;
    POLDER_TRY(add_wait_list(context, count, list, events));
    return events;
}

Result<void> check_none_failed(std::span<runtime::Event* const> events) {
    // CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST: the status of an event is negative.
    for (const runtime::Event* event : events)
        if (event->status() < 0)
            return fail(Status::exec_status_error_for_events_in_wait_list);
    return {};
}

Result<void> give_event(Ref<runtime::Event> event, cl_event* place) {
    if (!place)
        return {};
    POLDER_ASSIGN(handle, expose<cl_event>(std::move(event)));
    *place = handle;
    return {};
}

}  // namespace polder::api
