// Native kernels are functions of the application: devices with processors of their own do not execute them.
#pragma once

#include <CL/cl.h>
#include <gtest/gtest.h>

namespace polder::test {

[[nodiscard]] inline bool executes_native_kernels(cl_device_id device) {
    cl_device_exec_capabilities can = 0;
    EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof can, &can, nullptr), CL_SUCCESS);
    return (can & CL_EXEC_NATIVE_KERNEL) != 0;
}

}  // namespace polder::test
