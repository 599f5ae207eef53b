// Works around a defect of LLVM 22's LoopVectorize. Of an unsigned division under a condition, whose quotient is the same for all lanes of a vector, it
// computes one for all, but only where the first lane fulfils the condition. The others have any number. So is `n % size` under a condition, and
// `(i / 16) % size`.
#pragma once

#include <llvm/Passes/PassBuilder.h>

namespace polder::compiler::workgroup {

// Before LoopVectorize, divisions of numbers that are the same in all iterations are moved in front of innermost loops, where a divisor that may be
// zero is replaced by one. Others under conditions are computed for each lane.
void add_loop_division_pass(llvm::PassBuilder& builder);

}  // namespace polder::compiler::workgroup
