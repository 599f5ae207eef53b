#include "single_iterations.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>

namespace polder::compiler::workgroup {

namespace {

// The value of `expression` in the first iteration.
const llvm::SCEV* at_first(const llvm::SCEV* expression, const llvm::Loop& loop) {
    const auto* const counter = llvm::dyn_cast<llvm::SCEVAddRecExpr>(expression);
    return counter != nullptr && counter->getLoop() == &loop ? counter->getStart() : expression;
}

// Whether the first iteration takes the branch to `successor` (0 or 1), as far as the operands of its comparison show.
bool is_taken_at_first(const llvm::BranchInst& branch, unsigned successor, const llvm::Loop& loop,
                       llvm::ScalarEvolution& evolution) {
    const auto* const comparison = llvm::dyn_cast<llvm::ICmpInst>(branch.getCondition());
    if (comparison == nullptr || !evolution.isSCEVable(comparison->getOperand(0)->getType()))
        return false;
    const llvm::SCEV* const left = at_first(evolution.getSCEV(comparison->getOperand(0)), loop);
    const llvm::SCEV* const right = at_first(evolution.getSCEV(comparison->getOperand(1)), loop);
    if (!evolution.isLoopInvariant(left, &loop) || !evolution.isLoopInvariant(right, &loop))
        return false;
    return evolution.isKnownPredicate(successor == 0 ? comparison->getPredicate() : comparison->getInversePredicate(),
                                      left, right);
}

}  // namespace

llvm::PreservedAnalyses EndAfterFirstIteration::run(llvm::Loop& loop, llvm::LoopAnalysisManager& /*analyses*/,
                                                    llvm::LoopStandardAnalysisResults& results,
                                                    llvm::LPMUpdater& /*updater*/) {
    const llvm::BasicBlock* const latch = loop.getLoopLatch();
    auto* const branch = latch && loop.isLoopExiting(latch)
                             ? llvm::dyn_cast<llvm::BranchInst>(const_cast<llvm::Instruction*>(latch->getTerminator()))
                             : nullptr;
    if (branch == nullptr || !branch->isConditional() || llvm::isa<llvm::Constant>(branch->getCondition()))
        return llvm::PreservedAnalyses::all();
    const unsigned leaving = loop.contains(branch->getSuccessor(0)) ? 1 : 0;
    if (!is_taken_at_first(*branch, leaving, loop, results.SE))
        return llvm::PreservedAnalyses::all();
    branch->setCondition(llvm::ConstantInt::getBool(branch->getContext(), leaving == 0));
    results.SE.forgetLoop(&loop);
    return llvm::getLoopPassPreservedAnalyses();
}

}  // namespace polder::compiler::workgroup
