// LLVM's verifier after our passes, in builds with assertions: malformed code is a failed build whose log names the pass
// and what is wrong, instead of a crash in whichever of LLVM's passes meets it. Without assertions it costs nothing.
#pragma once

#include <llvm/IR/Module.h>
#include <polder/result.h>

namespace polder::compiler {

// `pass` as in "what <pass> made of the program is not valid code". build_program_failure.
[[nodiscard]] Result<void> verified(const llvm::Module& module, const char* pass);

}  // namespace polder::compiler
