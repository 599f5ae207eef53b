// Estimates how long an optimized work-group function runs, so that its form with lanes and its form without can be compared.
//
// LLVM's cost model has the price of each instruction, and a block counts as often as it is assumed to run. The estimate sees what prices of
// the code before LLVM's passes cannot: that LLVM computes with 16 adjacent bytes of one work-item at once, recognizes a sequence of shifts as
// one instruction, or keeps a private array in registers.
#pragma once

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Function.h>

namespace polder::compiler {

// The sum for one group with an unknown number of work-items. Only the ratio of two estimates for one kernel and one size of groups means
// anything.
[[nodiscard]] double estimated_work(llvm::Function& function, const llvm::TargetTransformInfo& target);

}  // namespace polder::compiler
