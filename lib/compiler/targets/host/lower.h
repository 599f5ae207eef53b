// Changes a program's module to its host form: one address space, printf as a call of a function of this process, the built-ins
// linked, and each function simplified just enough for kernel_info.h to see what a kernel does with its arguments.
//
// Done once per program, for all of its kernels. Any thread, each with its own module.
#pragma once

#include <llvm/IR/Module.h>
#include <polder/result.h>
#include <string>

namespace polder::compiler {

// Expects a target-neutral module without program-scope variables (module/program_variables.h). compiler_not_available without the
// library of built-ins; link_program_failure for undefined symbols, which `log` names.
[[nodiscard]] Result<void> lower_for_host(llvm::Module& module, std::string& log);

// Replaces calls of `_polder_program_variables` by loads from the launch context. For a module in host form, after its kernels were
// examined.
void place_program_variables(llvm::Module& module);

}  // namespace polder::compiler
