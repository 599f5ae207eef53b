// Unrolls loops whose counter indexes a private array, when the array can be kept in registers afterwards.
//
// LLVM unrolls a loop when this makes the loop's own code cheaper. It does not see that a private array costs more in a
// work-group function than in other code: it has a copy for each work-item, and lives in memory across barriers. Once all its
// indices are constants, SROA replaces it with one value for each element.
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/PassManager.h>

namespace llvm {
class Function;
class LPMUpdater;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Marks such loops for LLVM's full unrolling, which has to follow. Leaves loops alone that the program forbids to unroll, and those that
// would become very long. A number that the program gives (`#pragma unroll 3`) is meant for processors without large vectors: more registers are
// saved when the array is in registers, too.
struct UnrollForPrivateArrays : llvm::PassInfoMixin<UnrollForPrivateArrays> {
    static llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                       llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

// Computes from constants what a counter is behind a loop that accesses a small private array, where the number of iterations is a constant: `last` of
// `for (k < 2) for (j < 5) { --last; ... v[last] }` is a counter of the loop around only then.
struct ComputeExitValues : llvm::PassInfoMixin<ComputeExitValues> {
    static llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                       llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

// Whether the function has a small private array with an index that is no constant. When the loops inside a loop are simpler, what they do with
// such an array may be known, so that the passes are worth another round.
[[nodiscard]] bool has_indexed_private_array(const llvm::Function& function);

}  // namespace polder::compiler::workgroup
