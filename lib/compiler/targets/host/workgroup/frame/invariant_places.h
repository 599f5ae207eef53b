// Moves places that are computed in floating point, such as those of an image's elements, out of loops in which they do not change.
//
// LLVM moves invariant code before it unrolls loops. In two loops over the neighbours of an element, the columns' places become invariant in the loop over
// rows only when the loop over columns was unrolled. Then the former is small enough to be unrolled, too.
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/PassManager.h>

namespace llvm {
class LPMUpdater;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Runs before LLVM's full unrolling, for each loop after those in it.
struct MoveInvariantPlaces : llvm::PassInfoMixin<MoveInvariantPlaces> {
    static llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                       llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

}  // namespace polder::compiler::workgroup
