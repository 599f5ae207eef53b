// Keeps in registers what a loop adds to an element of a buffer: `for (...) out[i].x += ...`.
//
// The store in the loop must stay where another pointer may point to the element. The loop is then copied: one copy runs when a
// check of address ranges finds that the loop's pointers do not overlap, and its stores are moved to after the loop; the other copy is as
// written. Neighbouring work-items that become lanes run the same copy (`polder.any_work_item`, work_item_functions.h).
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/PassManager.h>

namespace llvm {
class BasicBlock;
class LPMUpdater;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Marks, in the llvm.loop metadata, the copy as written. It rarely runs.
inline constexpr const char* fallback_loop_tag = "polder.fallback_loop";

// Whether an innermost loop stores to one element each iteration.
[[nodiscard]] bool has_accumulators(const llvm::LoopInfo& loops);

// Copies innermost loops that store to one element each iteration. LLVM's LICM then moves the stores.
struct SeparateAccumulators : llvm::PassInfoMixin<SeparateAccumulators> {
    static llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                       llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

// Whether `block` belongs to a copy as written.
[[nodiscard]] bool is_in_fallback_loop(const llvm::LoopInfo& loops, const llvm::BasicBlock* block);

}  // namespace polder::compiler::workgroup
