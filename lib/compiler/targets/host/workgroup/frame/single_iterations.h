// Loops that run once.
//
//   for (y = first; y < min(rows, first + ROWS); ++y)
//
// is how kernels are written that process ROWS rows for each work-item, and ROWS is often 1 on processors (all of OpenCV's element-wise kernels).
// LLVM does not see that the second iteration never comes, and unrolls the loop.
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/PassManager.h>

namespace llvm {
class LPMUpdater;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Makes the condition at the end of such a loop a constant. LLVM's LoopDeletion, which has to follow, then removes the loop around its body.
struct EndAfterFirstIteration : llvm::PassInfoMixin<EndAfterFirstIteration> {
    static llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                       llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

}  // namespace polder::compiler::workgroup
