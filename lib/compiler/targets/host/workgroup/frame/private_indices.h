// Pointers that walk through private arrays.
//
//   private uint* key = keys;
//   for (i = 0; i < 7; ++i, key += 8) key[8] = ...
//
// Such a pointer hides from the vectorizer which array it belongs to, and that its distance from the array's beginning is the same for all lanes.
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/PassManager.h>

namespace llvm {
class LPMUpdater;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Replaces such a pointer by an index, which is added to the pointer's first value.
struct IndexPrivateArrays : llvm::PassInfoMixin<IndexPrivateArrays> {
    static llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                       llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

}  // namespace polder::compiler::workgroup
