// Moves program-scope variables out of the module: the runtime allocates memory for them for each program and
// device. Constants stay in the code, except those that hold the address of such a variable.
//
// The code finds the variables at offsets from the result of `_polder_program_variables`, which is the memory's address in the
// global address space. Each target replaces these calls (the host by LaunchContext::program_variables).
//
// Expects a target-neutral module of the whole linked program, so that the offsets are the same for all targets.
// Errors: link_program_failure when a variable is initialised with the address of a function or of a constant, because that
// address is not known before the code is loaded.
#pragma once

#include <compiler/compiler.h>

#include <llvm/IR/Module.h>

namespace polder::compiler {

inline constexpr const char* program_variables_function = "_polder_program_variables";

// Whether the module has such variables; else extract_program_variables does not change it.
[[nodiscard]] bool has_program_variables(const llvm::Module& module);

[[nodiscard]] Result<ProgramVariables> extract_program_variables(llvm::Module& module);

}  // namespace polder::compiler
