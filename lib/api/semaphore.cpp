// Semaphores (cl_khr_semaphore 1.0). The functions are found by name.
#include "enqueue.h"

#include <runtime/buffer_commands.h>
#include <runtime/semaphore.h>

#include <algorithm>
#include <optional>

using namespace polder;
using namespace polder::api;
using runtime::Context;
using runtime::Device;
using runtime::Event;
using runtime::Queue;
using runtime::Semaphore;

namespace {

// Values that older headers lack, or have under another name.
constexpr cl_semaphore_properties_khr device_handle_list = 0x2053;
constexpr cl_semaphore_info_khr export_handle_types = 0x203F;
constexpr cl_semaphore_info_khr exportable = 0x2054;

struct SemaphoreProperties {
    std::optional<cl_semaphore_properties_khr> type;
    Device* device = nullptr;
    std::vector<cl_semaphore_properties_khr> list;  // with its terminating zero
};

// Checks a list of devices that ends with a zero, and returns its only device.
Result<Device*> check_device(const Context& context, const cl_semaphore_properties_khr* list) {
    // CL_INVALID_DEVICE: the list has not exactly one device (this check), or the device is not one of the context.
    if (list[0] == 0 || list[1] != 0)
        return fail(Status::invalid_device);
    POLDER_ASSIGN(device, from_handle<Device>(reinterpret_cast<const void*>(list[0])));
    if (!context.has(*device))
        return fail(Status::invalid_device);
    return device;
}

Result<SemaphoreProperties> check_properties(const Context& context, const cl_semaphore_properties_khr* list) {
    SemaphoreProperties properties;
    // CL_INVALID_VALUE: sema_props is null.
    if (!list)
        return fail(Status::invalid_value);
    const cl_semaphore_properties_khr* at = list;
    while (*at != 0) {
        // CL_INVALID_PROPERTY (all checks): a property is unknown or listed twice, or the type is not CL_SEMAPHORE_TYPE_BINARY_KHR.
        if (*at == CL_SEMAPHORE_TYPE_KHR && !properties.type) {
            if (at[1] != CL_SEMAPHORE_TYPE_BINARY_KHR)
                return fail(Status::invalid_property);
            properties.type = at[1];
            at += 2;
        } else if (*at == device_handle_list && !properties.device) {
            POLDER_ASSIGN(device, check_device(context, at + 1));
            properties.device = device;
            at += 3;
        } else {
            return fail(Status::invalid_property);
        }
    }
    // CL_INVALID_VALUE: the properties do not contain CL_SEMAPHORE_TYPE_KHR.
    if (!properties.type)
        return fail(Status::invalid_value);
    // CL_INVALID_PROPERTY: the context has several devices, and the properties contain none.
    if (!properties.device && context.devices().size() > 1)
        return fail(Status::invalid_property);
    properties.list.assign(list, at + 1);
    return properties;
}

Result<cl_semaphore_khr> create_semaphore(cl_context handle, const cl_semaphore_properties_khr* list) {
    POLDER_ASSIGN(context, from_handle<Context>(handle));
    POLDER_ASSIGN(properties, check_properties(*context, list));
    Ref<Device> device = properties.device ? Ref<Device>::share(properties.device) : nullptr;
    return expose<cl_semaphore_khr>(
        Semaphore::create(Ref<Context>::share(context), std::move(device), std::move(properties.list)));
}

Result<void> get_info(cl_semaphore_khr handle, cl_semaphore_info_khr name, const Info& info) {
    POLDER_ASSIGN(semaphore, from_handle<Semaphore>(handle));
    switch (name) {
    case CL_SEMAPHORE_CONTEXT_KHR: return info.value(handle_of<cl_context>(&semaphore->context()));
    case CL_SEMAPHORE_REFERENCE_COUNT_KHR: return info.value<cl_uint>(semaphore->api_references());
    case CL_SEMAPHORE_PROPERTIES_KHR: return info.array(semaphore->properties());
    case CL_SEMAPHORE_TYPE_KHR: return info.value<cl_semaphore_type_khr>(CL_SEMAPHORE_TYPE_BINARY_KHR);
    case CL_SEMAPHORE_PAYLOAD_KHR: return info.value<cl_semaphore_payload_khr>(semaphore->payload());
    case device_handle_list: {
        std::vector<cl_device_id> devices;
        if (semaphore->device())
            devices.push_back(handle_of<cl_device_id>(semaphore->device()));
        else
            for (const auto& device : semaphore->context().devices())
                devices.push_back(handle_of<cl_device_id>(device.get()));
        return info.array(devices);
    }
    // Semaphores cannot be exported.
    case export_handle_types: return info.bytes(nullptr, 0);
    case exportable: return info.value<cl_bool>(CL_FALSE);
    default: return fail(Status::invalid_value);
    }
}

Result<std::vector<Semaphore*>> check_semaphores(const Queue& queue, cl_uint count, const cl_semaphore_khr* list) {
    // CL_INVALID_VALUE: num_sema_objects is 0.
    if (count == 0)
        return fail(Status::invalid_value);
    // CL_INVALID_SEMAPHORE_KHR: sema_objects is null, or one of them is not a semaphore.
    if (!list)
        return fail(Semaphore::invalid);
    std::vector<Semaphore*> semaphores;
    for (cl_uint i = 0; i < count; ++i) {
        POLDER_ASSIGN(semaphore, from_handle<Semaphore>(list[i]));
        semaphores.push_back(semaphore);
    }
    for (const Semaphore* semaphore : semaphores) {
        // CL_INVALID_CONTEXT: the semaphore and the queue are of different contexts.
        if (&semaphore->context() != &queue.context())
            return fail(Status::invalid_context);
        // CL_INVALID_COMMAND_QUEUE: the semaphore is of another device.
        if (semaphore->device() && semaphore->device() != &queue.device())
            return fail(Status::invalid_command_queue);
    }
    return semaphores;
}

Result<Ref<Event>> enqueue_marker(Queue& queue, cl_command_type type, std::span<Event* const> waits) {
    return queue.enqueue({type, waits, runtime::EnqueueRequest::WantEvent::yes}, runtime::MarkerCommand{});
}

Result<Ref<Event>> enqueue_wait(Queue& queue, std::span<Semaphore* const> semaphores, std::span<Event* const> events) {
    std::vector<Ref<Event>> signals;
    std::vector<Event*> waits(events.begin(), events.end());
    for (Semaphore* semaphore : semaphores) {
        signals.push_back(semaphore->take_signal());
        waits.push_back(signals.back().get());
    }
    Result<Ref<Event>> enqueued = enqueue_marker(queue, CL_COMMAND_SEMAPHORE_WAIT_KHR, waits);
    for (size_t i = 0; i < semaphores.size(); ++i)
        semaphores[i]->finish_wait(signals[i], enqueued ? *enqueued : nullptr);
    return enqueued;
}

Result<Ref<Event>> enqueue_signal(Queue& queue, std::span<Semaphore* const> semaphores,
                                  std::span<Event* const> events) {
    POLDER_ASSIGN(enqueued, enqueue_marker(queue, CL_COMMAND_SEMAPHORE_SIGNAL_KHR, events));
    for (Semaphore* semaphore : semaphores)
        semaphore->add_signal(enqueued);
    return enqueued;
}

// For clGetSemaphoreHandleForTypeKHR, which always fails, because no semaphore can be exported.
Result<void> get_handle(cl_semaphore_khr handle, cl_device_id device_handle) {
    POLDER_ASSIGN(semaphore, from_handle<Semaphore>(handle));
    POLDER_ASSIGN(device, from_handle<Device>(device_handle));
    // CL_INVALID_DEVICE: device is not that of the semaphore, or not one of its context.
    if (semaphore->device() ? semaphore->device() != device : !semaphore->context().has(*device))
        return fail(Status::invalid_device);
    // CL_INVALID_VALUE: the semaphore was not created with handle_type.
    return fail(Status::invalid_value);
}

using Enqueue = Result<Ref<Event>> (*)(Queue& queue, std::span<Semaphore* const> semaphores,
                                       std::span<Event* const> events);

// Binary semaphores have no payload: the lists of payloads are ignored.
cl_int enqueue(cl_command_queue handle, cl_uint count, const cl_semaphore_khr* list, cl_uint num_events,
               const cl_event* events, cl_event* event, Enqueue what, const char* function) {
    return entry(
        [&]() -> Result<void> {
            POLDER_ASSIGN(queue, from_handle<Queue>(handle));
            POLDER_ASSIGN(semaphores, check_semaphores(*queue, count, list));
            POLDER_ASSIGN(waits, wait_list(queue->context(), num_events, events));
            // The next wait for a semaphore must not depend on a command that has failed.
            POLDER_TRY(check_none_failed(waits.view()));
            POLDER_ASSIGN(enqueued, what(*queue, semaphores, waits.view()));
            return give_event(std::move(enqueued), event);
        },
        function);
}

}  // namespace

CL_API_ENTRY cl_semaphore_khr CL_API_CALL clCreateSemaphoreWithPropertiesKHR(
    cl_context context, const cl_semaphore_properties_khr* sema_props, cl_int* errcode_ret) {
    return create<cl_semaphore_khr>(errcode_ret, [&] { return create_semaphore(context, sema_props); });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWaitSemaphoresKHR(cl_command_queue command_queue, cl_uint num_sema_objects,
                                                           const cl_semaphore_khr* sema_objects,
                                                           const cl_semaphore_payload_khr* /*sema_payload_list*/,
                                                           cl_uint num_events_in_wait_list,
                                                           const cl_event* event_wait_list, cl_event* event) {
    return enqueue(command_queue, num_sema_objects, sema_objects, num_events_in_wait_list, event_wait_list, event,
                   enqueue_wait, __func__);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSignalSemaphoresKHR(cl_command_queue command_queue, cl_uint num_sema_objects,
                                                             const cl_semaphore_khr* sema_objects,
                                                             const cl_semaphore_payload_khr* /*sema_payload_list*/,
                                                             cl_uint num_events_in_wait_list,
                                                             const cl_event* event_wait_list, cl_event* event) {
    return enqueue(command_queue, num_sema_objects, sema_objects, num_events_in_wait_list, event_wait_list, event,
                   enqueue_signal, __func__);
}

CL_API_ENTRY cl_int CL_API_CALL clGetSemaphoreInfoKHR(cl_semaphore_khr sema_object, cl_semaphore_info_khr param_name,
                                                      size_t param_value_size, void* param_value,
                                                      size_t* param_value_size_ret) {
    return entry(
        [&] { return get_info(sema_object, param_name, Info{param_value_size, param_value, param_value_size_ret}); });
}

CL_API_ENTRY cl_int CL_API_CALL clGetSemaphoreHandleForTypeKHR(cl_semaphore_khr sema_object, cl_device_id device,
                                                               cl_external_semaphore_handle_type_khr /*handle_type*/,
                                                               size_t /*handle_size*/, void* /*handle_ptr*/,
                                                               size_t* /*handle_size_ret*/) {
    return entry([&] { return get_handle(sema_object, device); });
}

CL_API_ENTRY cl_int CL_API_CALL clRetainSemaphoreKHR(cl_semaphore_khr sema_object) {
    return entry([&] { return retain<Semaphore>(sema_object); });
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseSemaphoreKHR(cl_semaphore_khr sema_object) {
    return entry([&] { return release<Semaphore>(sema_object); });
}
