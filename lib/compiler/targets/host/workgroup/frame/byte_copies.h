// Loops that copy bytes.
//
//   for (i = 0; i < 244; ++i) to[i] = from[i];
//
// is how OpenCL C copies structures from one address space to another. No processor gathers or scatters bytes, so lanes took 40 instructions and more for
// each of them.
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/PassManager.h>

namespace llvm {
class LPMUpdater;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Makes such a loop copy words, where their number is known, and both places are aligned to words.
struct CopyByWords : llvm::PassInfoMixin<CopyByWords> {
    static llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                       llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

}  // namespace polder::compiler::workgroup
