// Works around a defect of LLVM 22's LoopVectorize. Of an unsigned division under a condition, whose operands are the same in all iterations, it
// computes one quotient for a whole vector, but only where the first of the vector's iterations fulfils the condition. The others have any number.
#pragma once

#include <llvm/Passes/PassBuilder.h>

namespace polder::compiler::workgroup {

// Before LoopVectorize, such divisions are moved in front of innermost loops, where a divisor that may be zero is replaced by one.
void add_loop_division_pass(llvm::PassBuilder& builder);

}  // namespace polder::compiler::workgroup
