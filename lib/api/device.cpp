// Devices and sub-devices: OpenCL 3.0, sections 4.2 and 4.3.
#include "device_info.h"

#include <runtime/platform.h>

#include <algorithm>

using namespace polder;
using namespace polder::api;
using runtime::Device;
using runtime::Platform;

namespace {

// The time of the device's profiling clock, in nanoseconds. It is also the host's clock.
Result<cl_ulong> timestamp(cl_device_id handle) {
    POLDER_ASSIGN(device, from_handle<Device>(handle));
    return device->driver().now_ns();
}

} // namespace

namespace polder::api {

Result<std::vector<Ref<Device>>> select_devices(cl_device_type type) {
    constexpr cl_device_type known = CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU |
                                     CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CUSTOM;
    // CL_INVALID_DEVICE_TYPE: device_type has unknown bits, or none.
    if (type != CL_DEVICE_TYPE_ALL && (type == 0 || (type & ~known)))
        return fail(Status::invalid_device_type);
    const std::span<const Ref<Device>> all = Platform::get().devices();
    std::vector<Ref<Device>> selected;
    for (const Ref<Device>& device : all) {
        const bool is_default = (type & CL_DEVICE_TYPE_DEFAULT) && device == all.front();
        if (type == CL_DEVICE_TYPE_ALL || is_default || (device_type(*device) & type))
            selected.push_back(device);
    }
    return selected;
}

} // namespace polder::api

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type device_type, cl_uint num_entries,
                                               cl_device_id* devices, cl_uint* num_devices) {
    return entry([&]() -> Result<void> {
        // When platform is null, the behaviour is implementation-defined: Polder uses its only platform.
        if (platform)
            POLDER_TRY(from_handle<Platform>(platform));
        POLDER_ASSIGN(selected, select_devices(device_type));
        // CL_INVALID_VALUE: num_entries is 0 and devices is not null, or devices and num_devices are null.
        if ((devices && num_entries == 0) || (!devices && !num_devices))
            return fail(Status::invalid_value);
        if (num_devices)
            *num_devices = static_cast<cl_uint>(selected.size());
        // CL_DEVICE_NOT_FOUND: the platform has no device of device_type.
        if (selected.empty())
            return fail(Status::device_not_found);
        for (size_t i = 0; devices && i < std::min<size_t>(selected.size(), num_entries); ++i)
            devices[i] = handle_of<cl_device_id>(selected[i].get());
        return {};
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info param_name, size_t param_value_size,
                                                void* param_value, size_t* param_value_size_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Device>(device));
        return answer_device(*object, param_name, Info{param_value_size, param_value, param_value_size_ret});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clCreateSubDevices(cl_device_id in_device,
                                                   const cl_device_partition_property* properties, cl_uint num_devices,
                                                   cl_device_id* out_devices, cl_uint* num_devices_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(parent, from_handle<Device>(in_device));
        POLDER_ASSIGN(plan, plan_sub_devices(*parent, properties));
        // CL_INVALID_VALUE: num_devices is less than the number of sub-devices.
        if (out_devices && num_devices < plan.compute_units.size())
            return fail(Status::invalid_value);
        if (out_devices) {
            POLDER_ASSIGN(devices, create_sub_devices(*parent, plan));
            // Makes all handles before it writes any to out_devices, so that the call returns all or none.
            std::vector<cl_device_id> handles;
            for (const Ref<Device>& device : devices) {
                const Result<cl_device_id> handle = expose<cl_device_id>(device);
                if (!handle) {
                    for (const cl_device_id made : handles)
                        static_cast<void>(release<Device>(made));
                    return fail(handle.error());
                }
                handles.push_back(*handle);
            }
            std::ranges::copy(handles, out_devices);
        }
        if (num_devices_ret)
            *num_devices_ret = static_cast<cl_uint>(plan.compute_units.size());
        return {};
    });
}

CL_API_ENTRY cl_int CL_API_CALL clRetainDevice(cl_device_id device) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Device>(device));
        return object->parent() ? retain<Device>(device) : Result<void>{};
    });
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseDevice(cl_device_id device) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Device>(device));
        return object->parent() ? release<Device>(device) : Result<void>{};
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceAndHostTimer(cl_device_id device, cl_ulong* device_timestamp,
                                                        cl_ulong* host_timestamp) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(now_ns, timestamp(device));
        // CL_INVALID_VALUE: device_timestamp or host_timestamp is null.
        if (!device_timestamp || !host_timestamp)
            return fail(Status::invalid_value);
        *device_timestamp = *host_timestamp = now_ns;
        return {};
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetHostTimer(cl_device_id device, cl_ulong* host_timestamp) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(now_ns, timestamp(device));
        // CL_INVALID_VALUE: host_timestamp is null.
        if (!host_timestamp)
            return fail(Status::invalid_value);
        *host_timestamp = now_ns;
        return {};
    });
}
