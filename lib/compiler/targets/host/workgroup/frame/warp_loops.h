// Keeps loops of programs that assume that the work-items of a warp advance together.
//
// Sums made for GPUs halve their distance in a loop, and leave the barrier out once the distance fits a warp:
//
//   while (n > 1) { n /= 2; if (id < n) a[id] += a[id + n]; if (n > 32) barrier(CLK_LOCAL_MEM_FENCE); }
//
// `a` is volatile, so that each iteration loads what the one before has stored. The specification does not define the result. All
// work-items meet at the uniform branch around the barrier, so the result is the expected one (regions/cuts.h), unless LLVM unrolls the loop
// for a known size and the branch is gone.
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/PassManager.h>

namespace llvm {
class LPMUpdater;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Marks loops with volatile accesses and with barriers that not all iterations execute, so that LLVM does not unroll them.
struct KeepWarpLoops : llvm::PassInfoMixin<KeepWarpLoops> {
    static llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                       llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

}  // namespace polder::compiler::workgroup
