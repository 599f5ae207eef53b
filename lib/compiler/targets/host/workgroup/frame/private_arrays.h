// Unrolls loops whose counter indexes a private array, when the array can be kept in registers afterwards.
//
// LLVM unrolls a loop when this makes the loop's own code cheaper. It does not see that a private array costs more in a
// work-group function than in other code: it has a copy for each work-item, and lives in memory across barriers. Once all its
// indices are constants, SROA replaces it with one value for each element.
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/PassManager.h>

namespace llvm {
class LPMUpdater;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Marks such loops for LLVM's full unrolling, which has to follow. Leaves loops alone that the program has marked, and those that
// would become very long.
struct UnrollForPrivateArrays : llvm::PassInfoMixin<UnrollForPrivateArrays> {
    static llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                       llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

}  // namespace polder::compiler::workgroup
