// Moves program-scope variables out of the module: they live in memory that the runtime gives to each
// (program, device). Constants stay in the code, except those that hold the address of such a variable.
//
// In their place the code calls `_polder_program_variables`, which returns the memory's address in the global address
// space; each target puts a value in its place (the host: LaunchContext::program_variables).
//
// Expects a target-neutral module with every part of the program linked, so that places are the same for all targets.
// Errors: link_program_failure for an initialiser that has no address before the program runs (that of a function or of a
// constant).
#pragma once

#include <compiler/compiler.h>

#include <llvm/IR/Module.h>

namespace polder::compiler {

inline constexpr const char* program_variables_function = "_polder_program_variables";

[[nodiscard]] Result<ProgramVariables> extract_program_variables(llvm::Module& module);

}  // namespace polder::compiler
