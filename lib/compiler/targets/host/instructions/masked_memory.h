// Replaces masked loads and stores for which the processor has no instruction (such as gathers and scatters of 8 and 16-bit numbers)
// by one access for each lane. LLVM would make a branch and two blocks for each lane. Here a lane that is masked off
// reads or writes a variable on the stack instead: there is no branch, and a third of the code.
//
// Runs after all other passes over IR.
#pragma once

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Function.h>

namespace polder::compiler {

void lower_masked_memory(llvm::Function& function, const llvm::TargetTransformInfo& target);

}  // namespace polder::compiler
