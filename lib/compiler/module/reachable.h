// Reads from a program's bitcode only what one kernel needs: function bodies are read lazily, and all else is removed.
#pragma once

#include "bitcode.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Module.h>

namespace polder::compiler {

// A module with the function `kernel` and everything that it calls or uses. `bitcode` must outlive the module.
// out_of_resources when the bitcode is damaged.
[[nodiscard]] Result<std::unique_ptr<llvm::Module>> read_kernel(std::string_view bitcode, const std::string& kernel,
                                                                llvm::LLVMContext& context);

} // namespace polder::compiler
