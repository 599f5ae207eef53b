// The versions of OpenCL and of OpenCL C that follow from a target's lists of extensions and features. No list has an entry for OpenCL
// 3.1 itself: a device supports 3.1 if it has everything that 3.1 makes mandatory.
//
// Pure; any thread.
#pragma once

#include <compiler/compiler.h>

namespace polder::compiler {

// The extensions that every device of OpenCL 3.1 reports ("Required OpenCL Extensions" of the API's specification).
[[nodiscard]] std::span<const std::string_view> extensions_of_opencl_3_1();

// Major * 100 + minor * 10, the value of the macro __OPENCL_VERSION__: 300 or 310.
[[nodiscard]] uint32_t opencl_version(const Target& target);

// Whether the target has what OpenCL C 2.0 makes mandatory, which later versions make optional.
[[nodiscard]] bool has_opencl_c_2_0(const Target& target);

// The newest version of OpenCL C of which the target has all optional features: 120, 300 or 310. CL_DEVICE_OPENCL_C_VERSION reports it.
[[nodiscard]] uint32_t complete_language_version(const Target& target);

}  // namespace polder::compiler
