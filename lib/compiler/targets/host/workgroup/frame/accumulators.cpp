// LLVM's LoopVersioningLICM makes the copies, the check and the metadata about aliases.
#include "accumulators.h"

#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopVersioningLICM.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler::workgroup {

namespace {

bool stores_to_one_place(const llvm::Loop& loop) {
    if (!loop.isInnermost())
        return false;
    for (const llvm::BasicBlock* block : loop.blocks())
        for (const llvm::Instruction& instruction : *block)
            if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
                store && store->isSimple() && loop.isLoopInvariant(store->getPointerOperand()))
                return true;
    return false;
}

}  // namespace

bool has_accumulators(const llvm::LoopInfo& loops) {
    return llvm::any_of(loops.getLoopsInPreorder(), [](const llvm::Loop* loop) { return stores_to_one_place(*loop); });
}

llvm::PreservedAnalyses SeparateAccumulators::run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                                  llvm::LoopStandardAnalysisResults& results,
                                                  llvm::LPMUpdater& updater) {
    if (!stores_to_one_place(loop))
        return llvm::PreservedAnalyses::all();
    llvm::PreservedAnalyses preserved = llvm::LoopVersioningLICMPass().run(loop, analyses, results, updater);
    if (preserved.areAllPreserved())
        return preserved;
    // `loop` is now the copy without aliases; the check branches to the other copy when its condition is true.
    const llvm::BasicBlock* before = loop.getLoopPreheader();
    const llvm::BasicBlock* check = before ? before->getSinglePredecessor() : nullptr;
    auto* branch =
        check ? llvm::dyn_cast<llvm::BranchInst>(const_cast<llvm::Instruction*>(check->getTerminator())) : nullptr;
    if (!branch || !branch->isConditional())
        return preserved;
    llvm::IRBuilder<> at(branch);
    branch->setCondition(at.CreateCall(any_work_item_intrinsic(*branch->getModule()), {branch->getCondition()}));
    const llvm::BasicBlock* other = branch->getSuccessor(0)->getSingleSuccessor();
    if (llvm::Loop* fallback = other ? results.LI.getLoopFor(other) : nullptr; fallback && !fallback->contains(&loop))
        llvm::addStringMetadataToLoop(fallback, fallback_loop_tag, 1);
    return preserved;
}

bool is_in_fallback_loop(const llvm::LoopInfo& loops, const llvm::BasicBlock* block) {
    for (const llvm::Loop* loop = loops.getLoopFor(block); loop; loop = loop->getParentLoop())
        if (llvm::getBooleanLoopAttribute(loop, fallback_loop_tag))
            return true;
    return false;
}

}  // namespace polder::compiler::workgroup
