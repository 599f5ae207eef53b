// clGetDeviceInfo as a table with one row per query, and clGetDeviceIDs's selection by type.
#pragma once

#include "entry.h"

#include <runtime/device.h>

namespace polder::api {

// invalid_value for a query that is not in the table.
[[nodiscard]] Result<void> answer_device(const runtime::Device& device, cl_device_info name, const Info& info);

[[nodiscard]] cl_device_type device_type(const runtime::Device& device);

// The platform's devices of a type; the first one is the default device. invalid_device_type for unknown bits.
[[nodiscard]] Result<std::vector<Ref<runtime::Device>>> select_devices(cl_device_type type);

} // namespace polder::api
