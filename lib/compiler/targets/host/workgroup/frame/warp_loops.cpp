#include "warp_loops.h"

#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler::workgroup {

namespace {

bool has_volatile_access(const llvm::Loop& loop) {
    return llvm::any_of(loop.blocks(), [](const llvm::BasicBlock* block) {
        return llvm::any_of(*block, [](const llvm::Instruction& each) { return each.isVolatile(); });
    });
}

bool has_barrier_in_some_iterations(const llvm::Loop& loop, const llvm::DominatorTree& dominators) {
    const llvm::BasicBlock* const latch = loop.getLoopLatch();
    bool has_any = false;
    for (const llvm::BasicBlock* block : loop.blocks())
        if (llvm::any_of(*block, is_barrier)) {
            if (latch == nullptr || dominators.dominates(block, latch))
                return false;
            has_any = true;
        }
    return has_any;
}

}  // namespace

llvm::PreservedAnalyses KeepWarpLoops::run(llvm::Loop& loop, llvm::LoopAnalysisManager&,
                                           llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater&) {
    if (has_barrier_in_some_iterations(loop, results.DT) && has_volatile_access(loop))
        llvm::addStringMetadataToLoop(&loop, "llvm.loop.unroll.disable", 1);
    return llvm::PreservedAnalyses::all();
}

}  // namespace polder::compiler::workgroup
