// Steps before the analysis of a loop over work-items. Each undoes what LLVM did to simplify the code of one work-item.
#include "prepared_loop.h"

#include "invariant_choices.h"
#include "joined_questions.h"
#include "targets/host/workgroup/frame/moved_invariants.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

// When the kernel adds 1 to its id in another dimension, LLVM also uses this sum as the next value of the outer loop's counter, after the
// loop over lanes. The sum is moved before the loop over lanes, so that no value of this loop is used after it.
void move_out_invariant_results(llvm::Loop& loop) {
    llvm::BasicBlock* const exit = loop.getExitBlock();
    if (!exit || !loop.getLoopPreheader())
        return;
    for (llvm::PHINode& phi : llvm::make_early_inc_range(exit->phis())) {
        llvm::Value* const value = phi.hasConstantValue();
        bool changed = false;
        if (value && loop.makeLoopInvariant(value, changed)) {
            phi.replaceAllUsesWith(value);
            phi.eraseFromParent();
        }
    }
}

// Code after the loop may use a value of the last work-item, such as a number that all work-items load from one address. It is passed in
// memory: the lanes store it, and the code after the loop loads it. LLVM's later passes put it into a register again.
void store_results(llvm::Loop& loop) {
    llvm::BasicBlock* const exit = loop.getExitBlock();
    llvm::BasicBlock* const latch = loop.getLoopLatch();
    if (!exit || !latch || loop.getExitingBlock() != latch || exit->getSinglePredecessor() != latch)
        return;
    llvm::Function& function = *exit->getParent();
    for (llvm::PHINode& phi : llvm::make_early_inc_range(exit->phis())) {
        llvm::IRBuilder<> at(&*function.getEntryBlock().getFirstInsertionPt());
        llvm::AllocaInst* const place = at.CreateAlloca(phi.getType(), nullptr, "result");
        place->setMetadata(shared_variable, llvm::MDNode::get(function.getContext(), {}));
        at.SetInsertPoint(latch->getTerminator());
        at.CreateStore(phi.getIncomingValueForBlock(latch), place);
        at.SetInsertPoint(&*exit->getFirstInsertionPt());
        phi.replaceAllUsesWith(at.CreateLoad(phi.getType(), place));
        phi.eraseFromParent();
    }
}

// Whether lane_shape has to know that a sum does not overflow: a sum of ints, or of longs that is truncated to int, as LLVM writes sums of ids.
bool is_sum_of_ints(const llvm::Instruction& sum) {
    using namespace llvm::PatternMatch;
    if (sum.getOpcode() != llvm::Instruction::Add || !sum.getType()->isIntegerTy())
        return false;
    const auto is_cut = [](const llvm::User* user) {
        constexpr uint64_t low_bits = UINT32_MAX;
        const llvm::APInt* factor = nullptr;
        return match(user, m_Trunc(m_Value())) || match(user, m_And(m_Value(), m_SpecificInt(low_bits))) ||
               (match(user, m_Shl(m_Value(), m_APInt(factor))) && factor->uge(32)) ||
               (match(user, m_Mul(m_Value(), m_APInt(factor))) && factor->countr_zero() >= 32);
    };
    return sum.getType()->isIntegerTy(32) || (sum.getType()->isIntegerTy(64) && llvm::any_of(sum.users(), is_cut));
}

// Moves summands that are the same for all lanes before the loop, as `row * width` of a row and a column: lane_shape checks there,
// once, that their sum with the index does not overflow.
void move_out_invariant_summands(llvm::Loop& loop) {
    if (!loop.getLoopPreheader())
        return;
    MovedInvariants invariants(loop);
    for (llvm::BasicBlock* block : loop.blocks())
        for (llvm::Instruction& sum : *block)
            if (is_sum_of_ints(sum))
                for (llvm::Value* summand : sum.operands())
                    invariants.move_out(*summand);
}

}  // namespace

void separate_counter(llvm::Loop& loop) {
    llvm::BasicBlock* latch = loop.getLoopLatch();
    auto* branch = latch ? llvm::dyn_cast<llvm::BranchInst>(latch->getTerminator()) : nullptr;
    auto* compare =
        branch && branch->isConditional() ? llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition()) : nullptr;
    auto* next = compare ? llvm::dyn_cast<llvm::BinaryOperator>(compare->getOperand(0)) : nullptr;
    if (!next || next->getOpcode() != llvm::Instruction::Add || (next->hasNUses(2) && compare->hasOneUse()))
        return;
    auto* index = llvm::dyn_cast<llvm::PHINode>(next->getOperand(0));
    if (!index || index->getParent() != loop.getHeader() || index->getIncomingValueForBlock(latch) != next)
        return;
    llvm::Instruction* own_next = next->clone();
    own_next->insertBefore(branch->getIterator());
    llvm::Instruction* own_compare = compare->clone();
    own_compare->setOperand(0, own_next);
    own_compare->insertBefore(branch->getIterator());
    branch->setCondition(own_compare);
    index->setIncomingValueForBlock(latch, own_next);
}

void prepare_loop(llvm::Loop& loop) {
    move_out_invariant_results(loop);
    choose_before(loop);
    store_results(loop);
    move_out_invariant_summands(loop);
    separate_questions(loop);
    separate_counter(loop);
}

}  // namespace polder::compiler::workgroup
