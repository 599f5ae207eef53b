// Moves program-scope variables out of the module: they live in memory that the runtime gives to each
// (program, device), at LaunchContext::program_variables. Constants stay in the code, except those that hold
// the address of such a variable.
//
// Expects a retargeted module with every part of the program linked. Errors: link_program_failure for an
// initialiser that has no address before the program runs (that of a function or of a constant).
#pragma once

#include <compiler/compiler.h>

#include <llvm/IR/Module.h>

namespace polder::compiler {

[[nodiscard]] Result<ProgramVariables> extract_program_variables(llvm::Module& module);

} // namespace polder::compiler
