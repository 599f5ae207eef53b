// Lowers printf on NVPTX: each call writes a record with its format, numbers and strings to the launch's ring buffer
// (include/polder/ptx_abi.h), which the host prints. The functions of lib/kernel/cl/nvptx/print.cl reserve the record and copy
// the strings.
#pragma once

#include <llvm/IR/Module.h>
#include <polder/result.h>

namespace polder::compiler {

// Runs before the built-ins are linked. Returns whether the module prints. out_of_resources for a format that is not a literal.
[[nodiscard]] Result<bool> lower_print(llvm::Module& module);

}  // namespace polder::compiler
