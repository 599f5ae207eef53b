// What clGetDeviceInfo answers: one row per query.
#pragma once

#include "entry.h"

#include <runtime/device.h>

namespace polder::api {

// invalid_value for a query that is not in the table.
[[nodiscard]] Result<void> answer_device(const runtime::Device& device, cl_device_info name, const Info& info);

[[nodiscard]] cl_device_type device_type(const runtime::Device& device);

} // namespace polder::api
