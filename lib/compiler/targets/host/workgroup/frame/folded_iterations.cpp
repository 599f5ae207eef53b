// A chain is a floating-point phi, and a product and a sum with constants that make its next value. LLVM's UnrollLoop makes the copies, and a second loop for
// the rest.
#include "folded_iterations.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/UnrollLoop.h>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned iterations_folded = 4;

// Of a product or a sum with constants: the number that is no constant, if the order may be changed; else null.
llvm::Value* only_variable_of(llvm::Instruction& operation) {
    switch (operation.getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul:
    case llvm::Instruction::FNeg: break;
    case llvm::Instruction::Call: {
        const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&operation);
        if (call == nullptr ||
            (call->getIntrinsicID() != llvm::Intrinsic::fmuladd && call->getIntrinsicID() != llvm::Intrinsic::fma))
            return nullptr;
        break;
    }
    default: return nullptr;
    }
    if (!operation.hasAllowReassoc() || !operation.hasNoSignedZeros())
        return nullptr;
    const auto* const call = llvm::dyn_cast<llvm::CallBase>(&operation);
    llvm::Value* variable = nullptr;
    for (llvm::Value* operand : call ? llvm::SmallVector<llvm::Value*, 3>(call->args())
                                     : llvm::SmallVector<llvm::Value*, 3>(operation.operand_values())) {
        if (llvm::isa<llvm::Constant>(operand))
            continue;
        if (variable != nullptr)
            return nullptr;
        variable = operand;
    }
    return variable;
}

// How many operations make the next value of `phi` of its own; 0 when the loop does anything else for it.
unsigned length_of_chain(llvm::PHINode& phi, const llvm::Loop& loop) {
    constexpr unsigned length_max = 2;
    llvm::Value* value = phi.getIncomingValueForBlock(loop.getHeader());
    unsigned length = 0;
    for (; value != &phi; ++length) {
        auto* const operation = llvm::dyn_cast<llvm::Instruction>(value);
        if (operation == nullptr || length == length_max || !loop.contains(operation))
            return 0;
        value = only_variable_of(*operation);
        if (value == nullptr)
            return 0;
    }
    return length;
}

// Whether the loop has such chains, and nothing else but its counter.
bool only_has_chains(const llvm::Loop& loop) {
    constexpr size_t instructions_max = 128;
    llvm::BasicBlock& block = *loop.getHeader();
    if (loop.getNumBlocks() != 1 || block.size() > instructions_max)
        return false;
    size_t chained = 0, floats = 0;
    for (llvm::Instruction& one : block) {
        if (one.getType()->isFloatingPointTy()) {
            floats += llvm::isa<llvm::PHINode>(one) ? 0 : 1;
            if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(&one)) {
                const unsigned length = length_of_chain(*phi, loop);
                if (length == 0)
                    return false;
                chained += length;
            }
        } else if (one.mayReadOrWriteMemory() || (!one.getType()->isIntegerTy() && !one.isTerminator())) {
            return false;
        }
    }
    return chained > 0 && chained == floats;
}

}  // namespace

llvm::PreservedAnalyses FoldIterations::run(llvm::Loop& loop, llvm::LoopAnalysisManager& /*analyses*/,
                                            llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater) {
    if (llvm::hasUnrollTransformation(&loop) != llvm::TM_Unspecified || !only_has_chains(loop) ||
        results.SE.getSmallConstantTripCount(&loop) != 0 || !results.SE.hasLoopInvariantBackedgeTakenCount(&loop))
        return llvm::PreservedAnalyses::all();
    llvm::UnrollLoopOptions options{};
    options.Count = iterations_folded;
    options.Runtime = true;
    constexpr unsigned cheap = 4;
    options.SCEVExpansionBudget = cheap;
    llvm::OptimizationRemarkEmitter remarks(loop.getHeader()->getParent());
    llvm::Loop* rest = nullptr;
    const auto result = llvm::UnrollLoop(&loop, options, &results.LI, &results.SE, &results.DT, &results.AC,
                                         &results.TTI, &remarks, /*PreserveLCSSA=*/true, &rest);
    if (result == llvm::LoopUnrollResult::Unmodified)
        return llvm::PreservedAnalyses::all();
    loop.setLoopAlreadyUnrolled();
    if (rest != nullptr) {
        rest->setLoopAlreadyUnrolled();
        updater.addSiblingLoops({rest});
    }
    return llvm::getLoopPassPreservedAnalyses();
}

}  // namespace polder::compiler::workgroup
