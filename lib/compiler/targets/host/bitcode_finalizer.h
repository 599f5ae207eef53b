// POCL_BITCODE_FINALIZER: a command of the user's that changes the bitcode of a kernel before machine code is made.
// Any thread.
#pragma once

#include <llvm/IR/Module.h>
#include <memory>
#include <polder/result.h>

namespace polder::compiler {

// `module`, or what the command made of it. out_of_resources when the command fails or leaves no bitcode.
[[nodiscard]] Result<std::unique_ptr<llvm::Module>> run_bitcode_finalizer(std::unique_ptr<llvm::Module> module);

} // namespace polder::compiler
