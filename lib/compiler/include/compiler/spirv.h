// Properties of a SPIR-V module that the runtime needs before it is compiled, and what modules may declare.
//
// Pure; any thread.
#pragma once

#include <compiler/compiler.h>

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

// The frontend reads SPIR-V 1.0 to 1.6. CL_DEVICE_IL_VERSION lists the versions, newest first.
inline constexpr uint32_t spirv_minor_version_max = 6;

// The module's specialization constants. invalid_value, with the reason as detail, when the header or the lengths of the
// instructions are not those of a SPIR-V module of a supported version. compile() checks the instructions themselves.
[[nodiscard]] Result<std::vector<SpecializationConstant>> inspect_spirv(std::span<const std::byte> bytes);

// The extensions and capabilities that modules for `target` may declare, and the instruction sets that modules may import; names are
// null-terminated and valid for ever. Instruction sets whose names begin with "NonSemantic." are allowed too.
[[nodiscard]] std::span<const char* const> spirv_instruction_sets();
[[nodiscard]] std::vector<const char*> spirv_extensions(const Target& target);
[[nodiscard]] std::vector<uint32_t> spirv_capabilities(const Target& target);

}  // namespace polder::compiler
