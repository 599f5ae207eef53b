// Checks that the device supports what a module requires: capabilities, extensions, the memory model, instruction sets.
//
// Pure; any thread. Errors: compile_program_failure; the log names what is missing.
#pragma once

#include "binary.h"

#include <compiler/compiler.h>

namespace polder::compiler::spirv {

[[nodiscard]] Result<void> check_requirements(const Binary& binary, const Target& target, std::string& log);

}  // namespace polder::compiler::spirv
