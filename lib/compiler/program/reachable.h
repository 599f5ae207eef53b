// What one kernel needs of a program's module: bodies are read lazily from bitcode, and the rest is removed.
#pragma once

#include "bitcode.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Module.h>

namespace polder::compiler {

// A module with the function `kernel` of `bitcode` and all that it reaches. `bitcode` must stay until the module is
// destroyed. out_of_resources when it is damaged.
[[nodiscard]] Result<std::unique_ptr<llvm::Module>> read_kernel(std::string_view bitcode, const std::string& kernel,
                                                                llvm::LLVMContext& context);

} // namespace polder::compiler
