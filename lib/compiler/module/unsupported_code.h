// Reports code that compiles but cannot be linked: calls of functions without a definition (a built-in of a feature that the
// device lacks, or a function of the program), and inline assembly. The build log names each with its line and feature.
//
// IR has line numbers only with debug information. So a module that contains such code is compiled a second time, with debug
// information, and the lines are kept as metadata of the first module (compile.cpp). The link reports them, because only the link
// knows which functions are undefined in the end. Other programs are compiled once. One thread per module.
#pragma once

#include <llvm/IR/Module.h>
#include <polder/result.h>
#include <string>

namespace polder::compiler {

// Whether `module` contains code that the link may report, so that its lines are needed.
[[nodiscard]] bool may_be_unsupported(const llvm::Module& module);

// Stores in `module` the lines of such code in `same`, which is the same source compiled with debug information.
void keep_lines(llvm::Module& module, const llvm::Module& same);

// link_program_failure when there is such code: `log` gets a line for each. Removes the stored lines.
[[nodiscard]] Result<void> check_supported(llvm::Module& module, std::string& log);

}  // namespace polder::compiler
