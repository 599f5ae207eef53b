// Decides which functions of a kernel's module are inlined.
#pragma once

#include <cstdint>
#include <llvm/IR/Module.h>

namespace polder::compiler {

// Marks the functions that are to be inlined; all but the kernel become internal. Returns how many instructions the longest kernel would have if all
// functions were inlined.
uint64_t prefer_inlining(llvm::Module& module);

}  // namespace polder::compiler
