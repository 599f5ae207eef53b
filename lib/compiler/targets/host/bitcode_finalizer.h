// Runs the command that the user names in POCL_BITCODE_FINALIZER. It may change the bitcode of a kernel before machine code is
// generated. Any thread.
#pragma once

#include <llvm/IR/Module.h>
#include <memory>
#include <polder/result.h>

namespace polder::compiler {

// Returns `module` when there is no command, else the module that the command wrote. out_of_resources when the command fails or
// writes no bitcode.
[[nodiscard]] Result<std::unique_ptr<llvm::Module>> run_bitcode_finalizer(std::unique_ptr<llvm::Module> module);

}  // namespace polder::compiler
