// A driver's device type in OpenCL's words.
#pragma once

#include <runtime/device.h>

namespace polder::api {

[[nodiscard]] inline cl_device_type device_type(const runtime::Device& device) {
    switch (device.info().type) {
    case driver::DeviceType::cpu: return CL_DEVICE_TYPE_CPU;
    case driver::DeviceType::gpu: return CL_DEVICE_TYPE_GPU;
    case driver::DeviceType::accelerator: return CL_DEVICE_TYPE_ACCELERATOR;
    }
    return CL_DEVICE_TYPE_CUSTOM;
}

} // namespace polder::api
