// Reorders the terms of a sum of vectors so that terms that are available early, constants above all, are added before the
// term at the end of the longest chain of operations. LLVM adds constants last, in its passes and again when it selects
// instructions, which makes the longest chain one addition longer. A hash function is one such chain (MD5: four operations a
// step, five with the constant last), and its length decides the speed.
//
// This is tree-height reduction (D. Kuck, "The Structure of Computers and Computations", 1978, chapter 2), done for sums with
// a constant; LLVM's MachineCombiner does it for other sums. Runs after all other passes over IR.
#pragma once

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Function.h>

namespace polder::compiler {

void order_sums(llvm::Function& function, const llvm::TargetTransformInfo& costs);

}  // namespace polder::compiler
