#include "skipped_results.h"

#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>

namespace polder::compiler {

namespace {

// The one use of a result: of lanes in a mask, where the others have another value.
llvm::SelectInst* choice_of(llvm::PHINode& phi) {
    auto* const choice = phi.hasOneUse() ? llvm::dyn_cast<llvm::SelectInst>(phi.user_back()) : nullptr;
    const bool is_here = choice && choice->getParent() == phi.getParent() && choice->getTrueValue() == &phi &&
                         choice->getFalseValue() != &phi && choice->getCondition()->getType()->isVectorTy();
    return is_here ? choice : nullptr;
}

bool is_skipped(const llvm::PHINode& phi) {
    return phi.getType()->isVectorTy() && phi.getNumIncomingValues() == 2 &&
           llvm::isa<llvm::PoisonValue>(phi.getIncomingValue(0)) !=
               llvm::isa<llvm::PoisonValue>(phi.getIncomingValue(1));
}

bool is_known_at_end(const llvm::Value& value, const llvm::BasicBlock& block, const llvm::DominatorTree& dominators) {
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    return instruction == nullptr || dominators.dominates(instruction, block.getTerminator());
}

void choose_before(llvm::PHINode& phi, const llvm::DominatorTree& dominators) {
    llvm::SelectInst* const choice = choice_of(phi);
    if (choice == nullptr)
        return;
    const unsigned skipped = llvm::isa<llvm::PoisonValue>(phi.getIncomingValue(0)) ? 0 : 1, computed = 1 - skipped;
    llvm::BasicBlock& end = *phi.getIncomingBlock(computed);
    llvm::Value &mask = *choice->getCondition(), &otherwise = *choice->getFalseValue();
    if (!is_known_at_end(mask, end, dominators) || !is_known_at_end(otherwise, end, dominators) ||
        !is_known_at_end(otherwise, *phi.getIncomingBlock(skipped), dominators))
        return;
    llvm::IRBuilder<> at(end.getTerminator());
    phi.setIncomingValue(computed, at.CreateSelect(&mask, phi.getIncomingValue(computed), &otherwise));
    phi.setIncomingValue(skipped, &otherwise);
    choice->replaceAllUsesWith(&phi);
    choice->eraseFromParent();
}

}  // namespace

void choose_where_computed(llvm::Function& function) {
    llvm::SmallVector<llvm::PHINode*> phis;
    for (llvm::BasicBlock& block : function)
        for (llvm::PHINode& phi : block.phis())
            if (is_skipped(phi))
                phis.push_back(&phi);
    if (phis.empty())
        return;
    const llvm::DominatorTree dominators(function);
    for (llvm::PHINode* const phi : phis)
        choose_before(*phi, dominators);
}

}  // namespace polder::compiler
