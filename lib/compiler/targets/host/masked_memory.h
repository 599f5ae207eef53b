// Lane-by-lane loads and stores in place of masked ones that the processor has no instruction for: gathers and scatters of
// bytes and 16-bit numbers, say. LLVM gives each lane a branch and two blocks of its own; here a lane that is masked off
// reads or writes a place on the stack, without a branch, in a third of the code.
//
// To be run after all other passes over IR.
#pragma once

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Function.h>

namespace polder::compiler {

void lower_masked_memory(llvm::Function& function, const llvm::TargetTransformInfo& target);

}  // namespace polder::compiler
