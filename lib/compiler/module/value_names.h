// Names of instructions, arguments and blocks are for people. Passes make and compare them, and bitcode has tables of them, which
// takes time for each kernel. No code depends on them.
#pragma once

#include <base/options.h>

#include <llvm/IR/LLVMContext.h>

namespace polder::compiler {

// POCL_LEAVE_KERNEL_COMPILER_TEMP_FILES writes IR to files, which are easier to read with names.
inline bool has_value_names() { return options::leave_compiler_temp_files(); }

inline void set_value_names(llvm::LLVMContext& context) { context.setDiscardValueNames(!has_value_names()); }

}  // namespace polder::compiler
