// Adds the terms of a sum of vectors in the order in which they become known: what is known first, constants above
// all, is added before what the longest chain of operations delivers. LLVM prefers constants last, in its passes
// and again when it selects instructions, which puts one more addition on that chain. A hash is one such chain
// (MD5: four operations a step, five with the constant last), and it is what the processor waits for.
//
// This is tree-height reduction (D. Kuck, "The Structure of Computers and Computations", 1978, chapter 2), done for sums with
// a constant; LLVM's MachineCombiner does it for the others. To be run after all other passes over IR.
#pragma once

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Function.h>

namespace polder::compiler {

void order_sums(llvm::Function& function, const llvm::TargetTransformInfo& costs);

}  // namespace polder::compiler
