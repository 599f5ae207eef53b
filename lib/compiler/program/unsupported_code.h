// Source that compiles but cannot become an executable: functions without a definition (a built-in of a feature that the
// device lacks, or the program's own), and inline assembly. The build log names each with its line and feature.
//
// Lines are not in the code unless it has debug information. So the compilation of a module that has such code runs a second
// time, with debug information, and the lines are kept as metadata of the first (compile.cpp); the link, which alone knows
// what is undefined in the end, reports them. Other programs pay nothing. One thread a module.
#pragma once

#include <llvm/IR/Module.h>
#include <polder/result.h>
#include <string>

namespace polder::compiler {

// Whether something in `module` may be reported at the link: the lines are worth having.
[[nodiscard]] bool may_be_unsupported(const llvm::Module& module);

// Keeps in `module` where `same` (the same source, compiled with debug information) has such code.
void keep_lines(llvm::Module& module, const llvm::Module& same);

// link_program_failure when there is such code, each with a line of `log`. Forgets the kept lines.
[[nodiscard]] Result<void> check_supported(llvm::Module& module, std::string& log);

}  // namespace polder::compiler
