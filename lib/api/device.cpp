// Devices and sub-devices: OpenCL 3.0, sections 4.2 and 4.3.
#include "device_info.h"

#include <runtime/platform.h>

using namespace polder;
using namespace polder::api;
using runtime::Device;
using runtime::Platform;

namespace {

constexpr cl_device_type known_types = CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU |
                                       CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CUSTOM;

std::vector<cl_device_id> devices_of_type(const Platform& platform, cl_device_type type) {
    std::vector<cl_device_id> found;
    for (const Ref<Device>& device : platform.devices()) {
        // The first device is the default one.
        const bool is_default = found.empty() && (type & CL_DEVICE_TYPE_DEFAULT) && type != CL_DEVICE_TYPE_ALL &&
                                device == platform.devices().front();
        if (type == CL_DEVICE_TYPE_ALL || is_default || (device_type(*device) & type))
            found.push_back(handle_of<cl_device_id>(device.get()));
    }
    return found;
}

// The clock of profiling, which is also the host's.
Result<cl_ulong> timestamp(cl_device_id handle) {
    POLDER_ASSIGN(device, from_handle<Device>(handle));
    return device->driver().now_ns();
}

} // namespace

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type device_type_wanted,
                                               cl_uint num_entries, cl_device_id* devices, cl_uint* num_devices) {
    return entry([&]() -> Result<void> {
        // Null behaves as the implementation says: it is the one platform.
        Platform* chosen = &Platform::get();
        if (platform) {
            POLDER_ASSIGN(given, from_handle<Platform>(platform));
            chosen = given;
        }
        // A type with unknown bits, or none.
        if (device_type_wanted != CL_DEVICE_TYPE_ALL &&
            (device_type_wanted == 0 || (device_type_wanted & ~known_types)))
            return fail(Status::invalid_device_type);
        // Room for no device, or no room for anything.
        if ((devices && num_entries == 0) || (!devices && !num_devices))
            return fail(Status::invalid_value);
        const std::vector<cl_device_id> found = devices_of_type(*chosen, device_type_wanted);
        if (num_devices)
            *num_devices = static_cast<cl_uint>(found.size());
        if (found.empty())
            return fail(Status::device_not_found);
        if (devices)
            std::copy_n(found.begin(), std::min<size_t>(found.size(), num_entries), devices);
        return {};
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info param_name,
                                                size_t param_value_size, void* param_value,
                                                size_t* param_value_size_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Device>(device));
        return answer_device(*object, param_name, Info{param_value_size, param_value, param_value_size_ret});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clCreateSubDevices(cl_device_id in_device,
                                                   const cl_device_partition_property* properties,
                                                   cl_uint num_devices, cl_device_id* out_devices,
                                                   cl_uint* num_devices_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(parent, from_handle<Device>(in_device));
        POLDER_ASSIGN(plan, plan_sub_devices(*parent, properties));
        // Room for fewer sub-devices than the partition has.
        if (out_devices && num_devices < plan.compute_units.size())
            return fail(Status::invalid_value);
        if (out_devices) {
            POLDER_ASSIGN(devices, create_sub_devices(*parent, plan));
            // All of them or none: no handle is given away before the last one is made.
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
        if (!device_timestamp || !host_timestamp)
            return fail(Status::invalid_value);
        *device_timestamp = *host_timestamp = now_ns;
        return {};
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetHostTimer(cl_device_id device, cl_ulong* host_timestamp) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(now_ns, timestamp(device));
        if (!host_timestamp)
            return fail(Status::invalid_value);
        *host_timestamp = now_ns;
        return {};
    });
}
