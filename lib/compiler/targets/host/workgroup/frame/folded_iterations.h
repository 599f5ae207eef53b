// Loops that repeat a product and a sum with constants.
//
//   for (i = 0; i < n; ++i) s = 10 - s * 0.99f;
//
// With options that permit other orders (-cl-unsafe-math-optimizations), several iterations are one product and one sum. Without lanes LLVM unrolls a loop
// with a few of them and finds that; with lanes the loop has a vector for each, and is too long.
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/PassManager.h>

namespace llvm {
class LPMUpdater;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Unrolls such a loop, so that InstCombine, which has to follow, makes one iteration of several.
struct FoldIterations : llvm::PassInfoMixin<FoldIterations> {
    static llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                       llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

}  // namespace polder::compiler::workgroup
