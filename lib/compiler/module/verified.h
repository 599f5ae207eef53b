// Runs LLVM's verifier after Polder's own passes, in builds with assertions. Malformed code is then a failed build whose log names
// the pass and the fault, instead of a crash in a later pass of LLVM. Without assertions it does nothing.
#pragma once

#include <llvm/IR/Module.h>
#include <polder/result.h>

namespace polder::compiler {

// build_program_failure when `module` is malformed. `pass` completes the message "what <pass> made of the program is not valid
// code".
[[nodiscard]] Result<void> verified(const llvm::Module& module, const char* pass);

}  // namespace polder::compiler
