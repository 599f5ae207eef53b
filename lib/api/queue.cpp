// Command-queues on the host and on devices: creation, queries, references, flush and finish. OpenCL 3.0, sections 5.1 and 5.15.
#include "device_info.h"
#include "entry.h"

#include <runtime/device_queue.h>
#include <runtime/extensions.h>
#include <runtime/queue.h>

#include <optional>

using namespace polder;
using namespace polder::runtime;

namespace polder::api {
namespace {

constexpr cl_command_queue_properties host_queue_properties =
    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
constexpr cl_command_queue_properties known_properties =
    host_queue_properties | CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT;

struct QueueProperties {
    cl_command_queue_properties bits = 0;
    std::optional<cl_queue_properties> size;
    bool has_hints = false;
    std::vector<cl_queue_properties> list;  // with its terminating zero, or empty
};

// A hint of cl_khr_priority_hints or cl_khr_throttle_hints has one of three levels. Polder ignores it, as the extensions allow.
bool is_level(cl_queue_properties value) { return value == 1 || value == 2 || value == 4; }

Result<void> check_bits(cl_command_queue_properties bits, const std::optional<cl_queue_properties>& size) {
    // CL_INVALID_VALUE: a property is unknown.
    if (bits & ~known_properties)
        return fail(Status::invalid_value);
    const bool on_device = bits & CL_QUEUE_ON_DEVICE;
    // CL_INVALID_VALUE: a queue on the host has CL_QUEUE_SIZE or CL_QUEUE_ON_DEVICE_DEFAULT (this check); or a queue on the device is
    // in order, or its size is 0 (the next check).
    if (!on_device && (size || (bits & CL_QUEUE_ON_DEVICE_DEFAULT)))
        return fail(Status::invalid_value);
    if (on_device && (!(bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) || size == 0u))
        return fail(Status::invalid_value);
    // CL_INVALID_QUEUE_PROPERTIES: the size exceeds CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE.
    if (size && *size > DeviceQueue::bytes_max)
        return fail(Status::invalid_queue_properties);
    return {};
}

Result<QueueProperties> check_properties(const cl_queue_properties* list) {
    QueueProperties properties;
    if (!list)
        return properties;
    for (; *list != 0; list += 2) {
        if (list[0] == CL_QUEUE_PROPERTIES)
            properties.bits = list[1];
        else if (list[0] == CL_QUEUE_SIZE)
            properties.size = list[1];
        // CL_INVALID_VALUE: a property is unknown, or the value of a hint is not one of its levels.
        else if ((list[0] != CL_QUEUE_PRIORITY_KHR && list[0] != CL_QUEUE_THROTTLE_KHR) || !is_level(list[1]))
            return fail(Status::invalid_value);
        else
            properties.has_hints = true;
        properties.list.insert(properties.list.end(), {list[0], list[1]});
    }
    properties.list.push_back(0);
    POLDER_TRY(check_bits(properties.bits, properties.size));
    return properties;
}

Result<cl_command_queue> create_device_queue(Context& context, Device& device, const QueueProperties& properties) {
    // CL_INVALID_QUEUE_PROPERTIES: the device does not support queues on the device, or there is a hint, which is for host queues only.
    if (!has_device_queues(device) || properties.has_hints)
        return fail(Status::invalid_queue_properties);
    const bool is_default = properties.bits & CL_QUEUE_ON_DEVICE_DEFAULT;
    // A context has one default queue for each device. When it exists, the call returns it with one more reference.
    if (is_default)
        if (DeviceQueue* const existing = context.retain_default_queue(device))
            return handle_of<cl_command_queue>(existing);
    const auto bytes = static_cast<uint32_t>(properties.size.value_or(DeviceQueue::preferred_bytes));
    const Ref<DeviceQueue> queue = DeviceQueue::create(Ref<Context>::share(&context), Ref<Device>::share(&device),
                                                       properties.bits, bytes, properties.list);
    POLDER_ASSIGN(handle, expose<cl_command_queue>(queue));
    if (is_default)
        context.set_default_queue(*queue);
    return handle;
}

Result<cl_command_queue> create_queue(cl_context context_handle, cl_device_id device_handle,
                                      const Result<QueueProperties>& properties) {
    POLDER_ASSIGN(context, from_handle<Context>(context_handle));
    POLDER_ASSIGN(device, from_handle<Device>(device_handle));
    // CL_INVALID_DEVICE: device is not one of the context.
    if (!context->has(*device))
        return fail(Status::invalid_device);
    if (!properties)
        return fail(properties.error());
    if (properties->bits & CL_QUEUE_ON_DEVICE)
        return create_device_queue(*context, *device, *properties);
    POLDER_ASSIGN(queue, Queue::create(Ref<Context>::share(context), Ref<Device>::share(device), properties->bits,
                                       properties->list));
    return expose<cl_command_queue>(queue);
}

cl_command_queue default_queue(const Context& context, const Device& device) {
    return handle_of<cl_command_queue>(context.default_queue(device));
}

Result<void> get_device_queue_info(const DeviceQueue& queue, cl_command_queue_info name, const Info& info) {
    switch (name) {
    case CL_QUEUE_CONTEXT: return info.value(handle_of<cl_context>(&queue.context()));
    case CL_QUEUE_DEVICE: return info.value(handle_of<cl_device_id>(&queue.device()));
    case CL_QUEUE_REFERENCE_COUNT: return info.value<cl_uint>(queue.api_references());
    case CL_QUEUE_PROPERTIES: return info.value<cl_command_queue_properties>(queue.properties());
    case CL_QUEUE_PROPERTIES_ARRAY: return info.array(queue.property_list());
    case CL_QUEUE_DEVICE_DEFAULT: return info.value(default_queue(queue.context(), queue.device()));
    case CL_QUEUE_SIZE: return info.value<cl_uint>(queue.bytes());
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

Result<void> get_queue_info(cl_command_queue handle, cl_command_queue_info name, const Info& info) {
    if (const auto on_device = from_handle<DeviceQueue>(handle))
        return get_device_queue_info(**on_device, name, info);
    POLDER_ASSIGN(queue, from_handle<Queue>(handle));
    switch (name) {
    case CL_QUEUE_CONTEXT: return info.value(handle_of<cl_context>(&queue->context()));
    case CL_QUEUE_DEVICE: return info.value(handle_of<cl_device_id>(&queue->device()));
    case CL_QUEUE_REFERENCE_COUNT: return info.value<cl_uint>(queue->api_references());
    case CL_QUEUE_PROPERTIES: return info.value<cl_command_queue_properties>(queue->properties());
    case CL_QUEUE_PROPERTIES_ARRAY: return info.array(queue->property_list());
    case CL_QUEUE_DEVICE_DEFAULT: return info.value(default_queue(queue->context(), queue->device()));
    case CL_QUEUE_SIZE:
        return fail(Status::invalid_command_queue);  // CL_INVALID_COMMAND_QUEUE: the queue is not a queue on the device
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

}  // namespace
}  // namespace polder::api

using namespace polder::api;

CL_API_ENTRY cl_command_queue CL_API_CALL clCreateCommandQueue(cl_context context, cl_device_id device,
                                                               cl_command_queue_properties properties,
                                                               cl_int* errcode_ret) {
    return create<cl_command_queue>(errcode_ret, [&] {
        const auto check = [&]() -> Result<QueueProperties> {
            // CL_INVALID_VALUE: a property is not valid for this function, which is older than CL_QUEUE_ON_DEVICE.
            if (properties & ~host_queue_properties)
                return fail(Status::invalid_value);
            return QueueProperties{properties, {}};
        };
        return create_queue(context, device, check());
    });
}

CL_API_ENTRY cl_command_queue CL_API_CALL clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                                             const cl_queue_properties* properties,
                                                                             cl_int* errcode_ret) {
    return create<cl_command_queue>(errcode_ret,
                                    [&] { return create_queue(context, device, check_properties(properties)); });
}

// cl_khr_create_command_queue.
extern "C" CL_API_ENTRY cl_command_queue CL_API_CALL clCreateCommandQueueWithPropertiesKHR(
    cl_context context, cl_device_id device, const cl_queue_properties_khr* properties, cl_int* errcode_ret) {
    return clCreateCommandQueueWithProperties(context, device, properties, errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clRetainCommandQueue(cl_command_queue queue) {
    return entry([&]() -> Result<void> {
        if (from_handle<DeviceQueue>(queue))
            return retain<DeviceQueue>(queue);
        return retain<Queue>(queue);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseCommandQueue(cl_command_queue queue) {
    return entry([&]() -> Result<void> {
        if (const auto on_device = from_handle<DeviceQueue>(queue)) {
            const Ref<Context> context = Ref<Context>::share(&(*on_device)->context());
            // CL_INVALID_COMMAND_QUEUE: the API's reference count of the queue is zero.
            return context->release_queue(**on_device) ? Result<void>{} : fail(Status::invalid_command_queue);
        }
        POLDER_ASSIGN(checked, from_handle<Queue>(queue));
        checked->flush();  // the specification says that clReleaseCommandQueue flushes
        return release<Queue>(queue);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info param_name,
                                                      size_t param_value_size, void* param_value,
                                                      size_t* param_value_size_ret) {
    return entry(
        [&] { return get_queue_info(queue, param_name, Info{param_value_size, param_value, param_value_size_ret}); });
}

CL_API_ENTRY cl_int CL_API_CALL clSetDefaultDeviceCommandQueue(cl_context context, cl_device_id device,
                                                               cl_command_queue queue) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked_context, from_handle<Context>(context));
        POLDER_ASSIGN(checked_device, from_handle<Device>(device));
        // CL_INVALID_DEVICE: device is not one of the context.
        if (!checked_context->has(*checked_device))
            return fail(Status::invalid_device);
        // CL_INVALID_OPERATION: the device does not support queues on the device.
        if (!has_device_queues(*checked_device))
            return fail(Status::invalid_operation);
        POLDER_ASSIGN(checked, from_handle<DeviceQueue>(queue));
        // CL_INVALID_COMMAND_QUEUE: the queue is not on this device, or belongs to another context.
        if (&checked->context() != checked_context || &checked->device() != checked_device)
            return fail(Status::invalid_command_queue);
        checked_context->set_default_queue(*checked);
        return {};
    });
}

// Deprecated since OpenCL 1.1. CL_INVALID_OPERATION: properties of a queue cannot be changed.
extern "C" CL_API_ENTRY cl_int CL_API_CALL clSetCommandQueueProperty(cl_command_queue queue,
                                                                     cl_command_queue_properties, cl_bool,
                                                                     cl_command_queue_properties*) {
    return entry([&]() -> Result<void> {
        POLDER_TRY(from_handle<Queue>(queue));
        return fail(Status::invalid_operation);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clFlush(cl_command_queue queue) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Queue>(queue));
        checked->flush();
        return {};
    });
}

CL_API_ENTRY cl_int CL_API_CALL clFinish(cl_command_queue queue) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Queue>(queue));
        checked->finish();
        return {};
    });
}
