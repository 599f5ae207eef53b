// Checks a module by SPIRV-Tools' validator, so that the translation can rely on its form: every id is defined once and
// before its uses, types agree, blocks dominate what they must.
//
// Pure; any thread. Errors: compile_program_failure, with the validator's words about the instruction in the log.
#pragma once

#include "binary.h"

namespace polder::compiler::spirv {

[[nodiscard]] Result<void> validate(const Binary& binary, std::string& log);

}  // namespace polder::compiler::spirv
