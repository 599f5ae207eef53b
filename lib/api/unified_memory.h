// Which unified shared memory a device can use (cl_intel_unified_shared_memory).
#pragma once

#include <runtime/allocation.h>
#include <runtime/device.h>

#include <CL/cl_ext.h>

namespace polder::api {

// Of allocations of one kind. 0: none.
[[nodiscard]] cl_device_unified_shared_memory_capabilities_intel memory_capabilities(const runtime::Device& device,
                                                                                     runtime::Allocation::Kind kind);
// Of all memory of the host.
[[nodiscard]] cl_device_unified_shared_memory_capabilities_intel
system_memory_capabilities(const runtime::Device& device);
// Whether any device of the context has such memory.
[[nodiscard]] bool has_memory_of(const runtime::Context& context, runtime::Allocation::Kind kind);

}  // namespace polder::api
