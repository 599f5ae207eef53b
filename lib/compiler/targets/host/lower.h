// The host form of a program: one address space, printf as a call into this process, the built-ins linked, and a light
// clean-up per function, enough to see what each kernel does with its arguments.
//
// Made once per program, for all of its kernels. Any thread, each with its own module.
#pragma once

#include <llvm/IR/Module.h>
#include <polder/result.h>
#include <string>

namespace polder::compiler {

// Expects a target-neutral module whose program-scope variables are extracted. compiler_not_available without the library of
// built-ins; link_program_failure for undefined symbols, which `log` names.
[[nodiscard]] Result<void> lower_for_host(llvm::Module& module, std::string& log);

// Replaces calls that ask where the program-scope variables are by loads from the launch context. For a module in host
// form, after its kernels were examined.
void place_program_variables(llvm::Module& module);

}  // namespace polder::compiler
