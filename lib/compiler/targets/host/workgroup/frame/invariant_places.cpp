#include "invariant_places.h"

#include "moved_invariants.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>

namespace polder::compiler::workgroup {

namespace {

bool has_converted_place(const llvm::BasicBlock* block) {
    return llvm::any_of(*block, [](const llvm::Instruction& instruction) {
        return llvm::isa<llvm::FPToSIInst, llvm::FPToUIInst>(instruction) && instruction.getType()->isIntegerTy(32);
    });
}

}  // namespace

llvm::PreservedAnalyses MoveInvariantPlaces::run(llvm::Loop& loop, llvm::LoopAnalysisManager&,
                                                 llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater&) {
    if (!loop.isInnermost() || loop.getLoopPreheader() == nullptr || llvm::none_of(loop.blocks(), has_converted_place))
        return llvm::PreservedAnalyses::all();
    MovedInvariants invariants(loop, &results.SE);
    for (llvm::BasicBlock* block : loop.blocks())
        for (llvm::Instruction& instruction : llvm::make_early_inc_range(*block))
            if (!instruction.isTerminator() && !llvm::isa<llvm::PHINode>(instruction))
                invariants.move_out(instruction);
    return invariants.is_changed() ? llvm::getLoopPassPreservedAnalyses() : llvm::PreservedAnalyses::all();
}

}  // namespace polder::compiler::workgroup
