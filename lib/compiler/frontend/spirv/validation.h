// Checks a module by SPIRV-Tools' validator. The translation relies on the rules that it checks: every id is defined once and
// before its uses, types match, and a block dominates its uses.
//
// Pure; any thread. Errors: compile_program_failure, with the validator's message in the log.
#pragma once

#include "binary.h"

namespace polder::compiler::spirv {

[[nodiscard]] Result<void> validate(const Binary& binary, std::string& log);

}  // namespace polder::compiler::spirv
