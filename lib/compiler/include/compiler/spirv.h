// What the runtime asks of a SPIR-V module before it is compiled.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <polder/result.h>
#include <span>
#include <string>
#include <vector>

namespace polder::compiler {

// A constant that the application may set before it builds a program.
struct SpecializationConstant {
    uint32_t id = 0;     // its SpecId
    uint32_t bytes = 0;  // the size of its value; 1 for truth values
};

// The versions that the frontend reads, newest first: "SPIR-V_1.6 …", as CL_DEVICE_IL_VERSION has them.
inline constexpr uint32_t spirv_minor_version_max = 6;

// The module's specialization constants. invalid_value, with the reason as detail, when the bytes are not in the outer
// form of a SPIR-V module of a version that the frontend reads; what the instructions say is checked by compile().
[[nodiscard]] Result<std::vector<SpecializationConstant>> inspect_spirv(std::span<const std::byte> bytes);

} // namespace polder::compiler
