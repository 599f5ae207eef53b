#include "left_over_items.h"

#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler::workgroup {
namespace {

// Whether nothing but the end of the loop uses the next index and its comparison, and the index is all that goes from one work-item to the next.
bool only_counts(const LanePlan& plan) {
    const auto* const end = llvm::dyn_cast<llvm::BranchInst>(plan.latch->getTerminator());
    return end != nullptr && end->isConditional() && end->getCondition() == plan.compare && plan.compare->hasOneUse() &&
           plan.compare->getOperand(0) == plan.next && plan.compare->getOperand(1) == plan.count &&
           plan.next->getParent() == plan.latch && plan.compare->getParent() == plan.latch &&
           llvm::all_of(plan.next->users(),
                        [&](const llvm::User* user) { return user == plan.index || user == plan.compare; }) &&
           llvm::hasSingleElement(plan.header->phis()) && end->getMetadata(llvm::LLVMContext::MD_loop) != nullptr;
}

}  // namespace

bool mask_left_over_items(const LanePlan& plan, unsigned width) {
    if (!only_counts(plan))
        return false;
    llvm::Instruction* const end = plan.latch->getTerminator();
    plan.compare->moveBefore(end->getIterator());
    plan.next->moveBefore(plan.compare->getIterator());
    llvm::BasicBlock* const latch = plan.latch->splitBasicBlock(plan.next->getIterator(), "items.end");
    llvm::BasicBlock* const body = plan.header->splitBasicBlock(plan.header->getFirstNonPHIIt(), "items.left");
    llvm::Instruction* const before = plan.header->getTerminator();
    llvm::IRBuilder<> at(before);
    at.CreateCondBr(at.CreateICmpULT(plan.index, plan.count), body, latch);
    before->eraseFromParent();

    const auto entry =
        llvm::find_if(plan.index->blocks(), [&](const llvm::BasicBlock* block) { return block != latch; });
    at.SetInsertPoint((*entry)->getTerminator());
    llvm::Value* const whole =
        at.CreateAnd(at.CreateAdd(plan.count, at.getInt64(width - 1)), at.getInt64(~uint64_t{width - 1}));
    plan.compare->setOperand(1, whole);
    set_loop_properties(*end, {left_over_tag}, end->getMetadata(llvm::LLVMContext::MD_loop));
    return true;
}

double part_left_over(const LanePlan& plan, unsigned width) {
    const auto* const count = llvm::dyn_cast<llvm::ConstantInt>(plan.count);
    if (count == nullptr || count->isZero())
        return 0;
    return static_cast<double>(count->getZExtValue() % width) / static_cast<double>(count->getZExtValue());
}

}  // namespace polder::compiler::workgroup
