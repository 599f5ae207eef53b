// The building blocks of all entry points of the C API.
//
//   CL_API_ENTRY cl_int CL_API_CALL clFlush(cl_command_queue command_queue) {
//       return entry([&]() -> Result<void> {
//           POLDER_ASSIGN(queue, from_handle<Queue>(command_queue));
//           queue->flush();
//           return {};
//       });
//   }
//
// `entry` converts a Result and std::bad_alloc to a cl_int, `create` to a handle and an errcode_ret. No exception
// leaves the C API. `Info` returns the values of clGet*Info queries, `wait_list` checks event wait lists.
#pragma once

#include "entry_points.h"

#include <base/fork.h>
#include <base/log.h>
#include <base/small_vector.h>
#include <runtime/context.h>
#include <runtime/event.h>
#include <runtime/handle.h>

#include <cstring>
#include <new>
#include <polder/result.h>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace polder::api {

using runtime::from_handle;

// With POCL_DEBUG=api, reports which call failed and why. Returns the error code.
[[nodiscard]] cl_int report(const Error& error, const char* function);

// The error of every call in a child that is cut off (base/fork.h). Reported once.
[[nodiscard]] cl_int report_cut_off(const char* function);

// `body` returns Result<void>. `function` is the name of the entry point that calls this.
template <class Body>
[[nodiscard]] cl_int entry(Body&& body, const char* function = __builtin_FUNCTION()) noexcept {
    const fork_state::Inside inside;
    // The body could wait for threads that do not exist in the child.
    if (inside.is_cut_off()) [[unlikely]]
        return report_cut_off(function);
    try {
        Result<void> result = body();
        if (result) [[likely]]
            return CL_SUCCESS;
        return report(result.error(), function);
    } catch (const std::bad_alloc&) {
        return report(Error{Status::out_of_host_memory}, function);
    }
}

// `body` returns Result<T>, where T converts to a handle or pointer and null means failure.
template <class T, class Body>
[[nodiscard]] T create(cl_int* errcode_ret, Body&& body, const char* function = __builtin_FUNCTION()) noexcept {
    T value{};
    const cl_int code = entry(
        [&]() -> Result<void> {
            Result<T> result = body();
            if (!result)
                return fail(result.error());
            value = *result;
            return {};
        },
        function);
    if (errcode_ret)
        *errcode_ret = code;
    return value;
}

// Gives a new object its handle, with an API reference count of 1, which the application owns.
template <class Handle, class T>
[[nodiscard]] Result<Handle> expose(Ref<T> object) {
    void* handle = object->expose(T::kind);
    if (!handle)
        return fail(Status::out_of_host_memory);
    static_cast<void>(object.detach());
    return static_cast<Handle>(handle);
}

template <class Handle, class T>
[[nodiscard]] Handle handle_of(const T* object) {
    return object ? static_cast<Handle>(object->handle()) : nullptr;
}

// clRetain* and clRelease* for one kind of object. `retain` works also when the API's count is zero and another object keeps this one
// (as a queue keeps its context): the application may have got the handle by a query. `release` then fails: CL_INVALID_<KIND>.
template <class T>
[[nodiscard]] Result<void> retain(const void* handle) {
    POLDER_ASSIGN(object, from_handle<T>(handle));
    object->retain_api();
    return {};
}
template <class T>
[[nodiscard]] Result<void> release(const void* handle) {
    POLDER_ASSIGN(object, from_handle<T>(handle));
    if (!object->release_api())
        return fail(T::invalid);
    return {};
}

// The output of a clGet*Info query.
class Info {
public:
    Info(size_t param_value_size, void* param_value, size_t* param_value_size_ret)
        : capacity_(param_value_size), value_(param_value), size_ret_(param_value_size_ret) {}

    [[nodiscard]] Result<void> bytes(const void* data, size_t size) const {
        // CL_INVALID_VALUE: param_value_size is less than the size of the result.
        if (value_ && capacity_ < size)
            return fail(Status::invalid_value);
        if (value_ && size)
            std::memcpy(value_, data, size);
        if (size_ret_)
            *size_ret_ = size;
        return {};
    }
    // The type must be exactly the one that the specification gives: cl_uint, size_t, cl_bool, a handle, ...
    template <class T>
        requires std::is_trivially_copyable_v<T>
    [[nodiscard]] Result<void> value(const T& answer) const {
        return bytes(&answer, sizeof(T));
    }
    template <class T>
    [[nodiscard]] Result<void> array(std::span<const T> answer) const {
        return bytes(answer.data(), answer.size_bytes());
    }
    template <class T>
    [[nodiscard]] Result<void> array(const std::vector<T>& answer) const {
        return array(std::span<const T>{answer});
    }
    // With its terminating zero.
    [[nodiscard]] Result<void> string(std::string_view answer) const;

    [[nodiscard]] void* place() const { return value_; }
    [[nodiscard]] size_t capacity() const { return capacity_; }
    [[nodiscard]] size_t* size_ret() const { return size_ret_; }

private:
    size_t capacity_;
    void* value_;
    size_t* size_ret_;
};

// The checked events of a wait list. Short lists need no memory from the heap.
using EventList = SmallVector<runtime::Event*, 8>;

// Checks that all entries of the list are events, and returns them; otherwise returns the error `invalid`.
[[nodiscard]] Result<EventList> checked_events(cl_uint count, const cl_event* list, Status invalid);

// Checks a wait list of clEnqueue* and appends its events to `events`. CL_INVALID_EVENT_WAIT_LIST, CL_INVALID_CONTEXT.
[[nodiscard]] Result<void> add_wait_list(const runtime::Context& context, cl_uint count, const cl_event* list,
                                         EventList& events);
[[nodiscard]] Result<EventList> wait_list(const runtime::Context& context, cl_uint count, const cl_event* list);
// For commands that must not be enqueued behind one that has failed. CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST.
[[nodiscard]] Result<void> check_none_failed(std::span<runtime::Event* const> events);

// Writes the handle of the command's event to `place`, if the application passed one.
[[nodiscard]] Result<void> give_event(Ref<runtime::Event> event, cl_event* place);

}  // namespace polder::api
