// clGetDeviceInfo as a table with one row per query, and clGetDeviceIDs's selection by type.
#pragma once

#include "entry.h"

#include <runtime/device.h>

namespace polder::api {

// Writes the result of a query. CL_INVALID_VALUE: the query is not in the tables.
[[nodiscard]] Result<void> answer_device(const runtime::Device& device, cl_device_info name, const Info& info);

[[nodiscard]] cl_device_type device_type(const runtime::Device& device);

// Whether kernels on the device may enqueue others.
[[nodiscard]] bool has_device_queues(const runtime::Device& device);

// The platform's devices of a type; the first one is the default device. CL_INVALID_DEVICE_TYPE: `type` has unknown bits or none.
[[nodiscard]] Result<std::vector<Ref<runtime::Device>>> select_devices(cl_device_type type);

}  // namespace polder::api
