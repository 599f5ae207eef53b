// The capabilities of devices for unified shared memory (cl_intel_unified_shared_memory).
#pragma once

#include <runtime/allocation.h>
#include <runtime/device.h>

#include <CL/cl_ext.h>

namespace polder::api {

// The capabilities for allocations of one kind. 0: the device cannot use them.
[[nodiscard]] cl_device_unified_shared_memory_capabilities_intel memory_capabilities(const runtime::Device& device,
                                                                                     runtime::Allocation::Kind kind);
// The capabilities for all host memory.
[[nodiscard]] cl_device_unified_shared_memory_capabilities_intel
system_memory_capabilities(const runtime::Device& device);
// Whether any device of the context can use allocations of this kind.
[[nodiscard]] bool has_memory_of(const runtime::Context& context, runtime::Allocation::Kind kind);

}  // namespace polder::api
