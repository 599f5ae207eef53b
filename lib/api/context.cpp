// Contexts: creation, queries, references and destructor callbacks. OpenCL 3.0, section 4.4. check_properties checks the list of
// properties; the devices come from a list or from a device type.
#include "device_info.h"
#include "entry.h"

#include <runtime/context.h>
#include <runtime/platform.h>

#include <algorithm>

using namespace polder;
using namespace polder::runtime;

namespace polder::api {
namespace {

// CL_INVALID_PROPERTY: the value has unknown bits, or a device does not have cl_khr_initialize_memory (its driver compiles kernels
// itself).
Result<void> check_initialization(cl_context_properties bits, std::span<const Ref<Device>> devices) {
    constexpr cl_context_properties known = 3;  // local, private
    const bool all_can =
        std::ranges::all_of(devices, [](const Ref<Device>& device) { return !device->info().language.has_value(); });
    return (bits & ~known) == 0 && (bits == 0 || all_can) ? Result<void>{} : fail(Status::invalid_property);
}

// The list with its terminating zero; invalid_property for unknown or repeated names.
Result<std::vector<cl_context_properties>> check_properties(const cl_context_properties* list,
                                                            std::span<const Ref<Device>> devices) {
    std::vector<cl_context_properties> properties;
    if (!list)
        return properties;
    bool has_platform = false;
    bool has_sync = false;
    bool has_initialization = false;
    for (; *list != 0; list += 2) {
        if (list[0] == CL_CONTEXT_PLATFORM) {
            // CL_INVALID_PROPERTY (this check and those below): a property is listed twice, has an invalid value, or is unknown.
            if (std::exchange(has_platform, true))
                return fail(Status::invalid_property);
            POLDER_TRY(from_handle<Platform>(reinterpret_cast<const void*>(list[1])));
        } else if (list[0] == CL_CONTEXT_INTEROP_USER_SYNC) {
            if (std::exchange(has_sync, true) || (list[1] != CL_TRUE && list[1] != CL_FALSE))
                return fail(Status::invalid_property);
        } else if (list[0] == CL_CONTEXT_MEMORY_INITIALIZE_KHR) {
            if (std::exchange(has_initialization, true))
                return fail(Status::invalid_property);
            POLDER_TRY(check_initialization(list[1], devices));
        } else {
            return fail(Status::invalid_property);
        }
        properties.insert(properties.end(), {list[0], list[1]});
    }
    properties.push_back(0);
    return properties;
}

Result<cl_context> create_context(const cl_context_properties* list, std::vector<Ref<Device>> devices,
                                  Context::Notify notify, void* user_data) {
    POLDER_ASSIGN(properties, check_properties(list, devices));
    // CL_INVALID_VALUE: pfn_notify is null and user_data is not.
    if (!notify && user_data)
        return fail(Status::invalid_value);
    return expose<cl_context>(Context::create(std::move(devices), std::move(properties), notify, user_data));
}

Result<std::vector<Ref<Device>>> check_devices(cl_uint count, const cl_device_id* list) {
    // CL_INVALID_VALUE: devices is null or num_devices is 0.
    if (!list || count == 0)
        return fail(Status::invalid_value);
    std::vector<Ref<Device>> devices;
    for (cl_uint i = 0; i < count; ++i) {
        POLDER_ASSIGN(device, from_handle<Device>(list[i]));
        // A device that is listed twice counts once.
        const bool known =
            std::any_of(devices.begin(), devices.end(), [&](const Ref<Device>& d) { return d.get() == device; });
        if (!known)
            devices.push_back(Ref<Device>::share(device));
    }
    return devices;
}

Result<void> get_context_info(cl_context handle, cl_context_info name, const Info& info) {
    POLDER_ASSIGN(context, from_handle<Context>(handle));
    switch (name) {
    case CL_CONTEXT_REFERENCE_COUNT: return info.value<cl_uint>(context->api_references());
    case CL_CONTEXT_NUM_DEVICES: return info.value<cl_uint>(static_cast<cl_uint>(context->devices().size()));
    case CL_CONTEXT_DEVICES: {
        std::vector<cl_device_id> devices;
        for (const Ref<Device>& device : context->devices())
            devices.push_back(handle_of<cl_device_id>(device.get()));
        return info.array(devices);
    }
    case CL_CONTEXT_PROPERTIES: return info.array(context->properties());
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

}  // namespace
}  // namespace polder::api

using namespace polder::api;

CL_API_ENTRY cl_context CL_API_CALL clCreateContext(const cl_context_properties* properties, cl_uint num_devices,
                                                    const cl_device_id* devices, Context::Notify pfn_notify,
                                                    void* user_data, cl_int* errcode_ret) {
    return create<cl_context>(errcode_ret, [&]() -> Result<cl_context> {
        POLDER_ASSIGN(checked, check_devices(num_devices, devices));
        return create_context(properties, std::move(checked), pfn_notify, user_data);
    });
}

CL_API_ENTRY cl_context CL_API_CALL clCreateContextFromType(const cl_context_properties* properties,
                                                            cl_device_type device_type, Context::Notify pfn_notify,
                                                            void* user_data, cl_int* errcode_ret) {
    return create<cl_context>(errcode_ret, [&]() -> Result<cl_context> {
        POLDER_ASSIGN(devices, select_devices(device_type));
        // CL_DEVICE_NOT_FOUND: the platform has no device of device_type.
        if (devices.empty())
            return fail(Status::device_not_found);
        return create_context(properties, std::move(devices), pfn_notify, user_data);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clRetainContext(cl_context context) {
    return entry([&] { return retain<Context>(context); });
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseContext(cl_context context) {
    return entry([&] { return release<Context>(context); });
}

CL_API_ENTRY cl_int CL_API_CALL clGetContextInfo(cl_context context, cl_context_info param_name,
                                                 size_t param_value_size, void* param_value,
                                                 size_t* param_value_size_ret) {
    return entry([&] {
        return get_context_info(context, param_name, Info{param_value_size, param_value, param_value_size_ret});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clSetContextDestructorCallback(cl_context context, Context::Destructor pfn_notify,
                                                               void* user_data) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        // CL_INVALID_VALUE: pfn_notify is null.
        if (!pfn_notify)
            return fail(Status::invalid_value);
        checked->add_destructor(pfn_notify, user_data);
        return {};
    });
}
