// Says of each load from a pointer to __constant memory that the memory does not change while the kernel runs.
//
// A `constant` argument is a buffer, and LLVM cannot know that another buffer which the kernel writes is not the same one. So it reads the
// coefficients of a filter again behind each store. OpenCL's memory model says that constant memory "remains constant during the execution of
// a kernel-instance" (the API's section on memory regions), so LLVM may load them once, before the loops.
//
// Must run while the address spaces are still those of spir64.
#pragma once

#include <llvm/IR/Module.h>

namespace polder::compiler {

void mark_constant_loads(llvm::Module& module);

}  // namespace polder::compiler
