#include "search_loops.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler::workgroup {

namespace {

// Whether `value` is computed in the loop from what the loop has loaded in the same iteration.
bool depends_on_load(const llvm::Value& value, const llvm::Loop& loop) {
    constexpr size_t values_max = 32;
    llvm::SmallPtrSet<const llvm::Value*, values_max> seen;
    llvm::SmallVector<const llvm::Value*> todo{&value};
    while (!todo.empty() && seen.size() < values_max) {
        const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(todo.pop_back_val());
        if (!instruction || !loop.contains(instruction) || !seen.insert(instruction).second)
            continue;
        if (llvm::isa<llvm::LoadInst>(instruction))
            return true;
        if (!llvm::isa<llvm::PHINode>(instruction))
            todo.append(instruction->op_begin(), instruction->op_end());
    }
    return false;
}

bool searches(const llvm::Loop& loop) {
    llvm::SmallVector<llvm::BasicBlock*> exiting;
    loop.getExitingBlocks(exiting);
    return exiting.size() > 1 && llvm::any_of(exiting, [&](const llvm::BasicBlock* block) {
               const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
               return branch && branch->isConditional() && depends_on_load(*branch->getCondition(), loop);
           });
}

}  // namespace

llvm::PreservedAnalyses KeepSearchLoops::run(llvm::Loop& loop, llvm::LoopAnalysisManager&,
                                             llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater&) {
    constexpr unsigned few = 4;
    if (llvm::hasUnrollTransformation(&loop) == llvm::TM_Unspecified &&
        results.SE.getSmallConstantMaxTripCount(&loop) > few && searches(loop))
        llvm::addStringMetadataToLoop(&loop, "llvm.loop.unroll.disable", 1);
    return llvm::PreservedAnalyses::all();
}

}  // namespace polder::compiler::workgroup
