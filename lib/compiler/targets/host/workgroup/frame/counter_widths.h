// Which loop counters of 32 bits LLVM widens to 64 bits.
//
//   for (int k = 0; k < n; ++k) { int place = k - id; if (place >= 0 && place < count) x += a[place]; }
//
// LLVM widens a counter when an index needs it, and with the counter all that is computed from it and compared with it. One number at a time, this saves
// extensions. For lanes, numbers of 64 bits take twice as many vectors, and gathers by them twice as long. The indices of a loop over work-items are extended
// once for all lanes in any case.
//
// Counters are widened where a step has to be seen: in loops that walk along rows of a lane's own (`a[id * n + k]`, row_loops.h), that start at different
// places in each lane, or have few iterations, so that they may be unrolled.
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/PassManager.h>

namespace llvm {
class LPMUpdater;
}  // namespace llvm

namespace polder::compiler::workgroup {

// LLVM's IndVarSimplify, which widens counters where it pays. Comparisons of numbers that differ between work-items stay narrow: their operands are hidden
// until ShowNarrowComparisons, which has to follow. Not those that decide how long a loop runs.
struct SimplifyCounters : llvm::PassInfoMixin<SimplifyCounters> {
    static llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                       llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

struct ShowNarrowComparisons : llvm::PassInfoMixin<ShowNarrowComparisons> {
    static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace polder::compiler::workgroup
