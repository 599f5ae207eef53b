// The properties of buffers and images: clCreateBufferWithProperties and clCreateImageWithProperties.
#pragma once

#include "external_memory.h"

#include <CL/cl.h>
#include <optional>
#include <polder/result.h>
#include <vector>

namespace polder::api {

struct MemProperties {
    std::optional<bool> wants_addresses;  // cl_ext_buffer_device_address, of buffers alone
    ExternalProperties external;
    std::vector<cl_mem_properties> list;  // with its terminating zero, as CL_MEM_PROPERTIES returns it, or empty
};

enum class PropertiesOf : uint8_t { buffer, image };

// `list` may be null. CL_INVALID_PROPERTY, CL_INVALID_DEVICE.
[[nodiscard]] Result<MemProperties> check_mem_properties(const runtime::Context& context, PropertiesOf object,
                                                         const cl_mem_properties* list);

} // namespace polder::api
