// printf on NVPTX: each call becomes a record in the launch's ring (include/polder/ptx_abi.h), with its format and strings as
// text. The functions of lib/kernel/cl/nvptx/print.cl reserve the record and copy strings.
#pragma once

#include <llvm/IR/Module.h>
#include <polder/result.h>

namespace polder::compiler {

// Before the built-ins are linked. True when the module prints. out_of_resources for a format that is not a literal.
[[nodiscard]] Result<bool> lower_print(llvm::Module& module);

}  // namespace polder::compiler
