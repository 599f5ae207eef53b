// Keeps loops that search: a work-item leaves them early when it has found something.
//
//   while (n < 16 && a[i + n] == b[i + n]) ++n;
//
// LLVM unrolls such a loop when its counter has a small limit. Each copy of its exits would be a place where some lanes leave: a mask, which all
// later copies and the code behind the loop have to combine. In a loop, one mask says which lanes still search.
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/PassManager.h>

namespace llvm {
class LPMUpdater;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Marks loops that are left depending on loaded values, so that LLVM does not unroll them. Leaves loops alone that the program or another pass has
// marked, and those with few iterations.
struct KeepSearchLoops : llvm::PassInfoMixin<KeepSearchLoops> {
    static llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                       llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

}  // namespace polder::compiler::workgroup
