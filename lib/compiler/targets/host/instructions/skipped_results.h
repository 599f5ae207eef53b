// Results of code that a branch often skips.
//
// After such code, as the call of a cold function, lanes choose: those that needed it have its result, others the value before. Where the code was
// skipped its result is poison, for which code generation takes whatever a register holds. That is often a value of the previous iteration of
// the loop, and the processor waits for it.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

// Moves the choice to the end of the code that may be skipped. Runs after all passes that might move it back.
void choose_where_computed(llvm::Function& function);

}  // namespace polder::compiler
