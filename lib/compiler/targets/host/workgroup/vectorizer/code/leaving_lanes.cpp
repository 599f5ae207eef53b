#include "leaving_lanes.h"

#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>

namespace polder::compiler::workgroup {

LeavingLanes::LeavingLanes(llvm::IRBuilder<>& at, llvm::Value* any_leaving) : at_(at), iteration_(at.GetInsertBlock()) {
    leaving_ = llvm::BasicBlock::Create(at.getContext(), "lanes.leaving", iteration_->getParent());
    next_ = llvm::BasicBlock::Create(at.getContext(), "lanes.next", iteration_->getParent());
    at_.CreateCondBr(any_leaving, leaving_, next_, llvm::MDBuilder(at.getContext()).createUnlikelyBranchWeights());
    at_.SetInsertPoint(leaving_);
}

llvm::Value* LeavingLanes::merged(llvm::Value* same, llvm::Value* left) {
    const llvm::IRBuilder<>::InsertPointGuard back(at_);
    at_.SetInsertPoint(next_);
    llvm::PHINode* const either = at_.CreatePHI(same->getType(), 2);
    either->addIncoming(same, iteration_);
    either->addIncoming(left, leaving_);
    return either;
}

const llvm::BranchInst* exit_of_all_lanes(const llvm::Loop& loop, const llvm::Loop::Edge& exit,
                                          const llvm::LoopInfo& loops, const LaneShapes& shapes) {
    const llvm::BasicBlock* const from = exit.first;
    const bool is_in_each = from == loop.getHeader() || from == loop.getLoopLatch();
    const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(from->getTerminator());
    const bool is_common = is_in_each && loops.getLoopFor(from) == &loop && branch && branch->isConditional() &&
                           shapes.of(branch->getCondition()).is_uniform();
    return is_common ? branch : nullptr;
}

namespace {

// Whether the loop has at most as many iterations as a few vectors have lanes.
bool is_short(const llvm::BranchInst& exit) {
    constexpr uint64_t iterations_max = 32;
    const auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(exit.getCondition());
    const auto* const bound = compare ? llvm::dyn_cast<llvm::ConstantInt>(compare->getOperand(1)) : nullptr;
    return bound && bound->getValue().abs().ule(iterations_max);
}

}  // namespace

bool is_left_rarely(const llvm::Loop& loop, llvm::ArrayRef<llvm::Loop::Edge> exits, const LanePlan& plan,
                    const LaneShapes& shapes, Masks masks) {
    const auto is_carried = [&](const llvm::PHINode& phi) { return !shapes.of(&phi).is_strided(); };
    const auto is_common = [&](const llvm::Loop::Edge& exit) {
        const llvm::BranchInst* const common = exit_of_all_lanes(loop, exit, *plan.loops, shapes);
        return common != nullptr && !is_short(*common);
    };
    return plan.kind != LoopKind::sub_group && exits.size() > 1 && llvm::any_of(exits, is_common) &&
           (masks == Masks::dear || llvm::none_of(loop.getHeader()->phis(), is_carried));
}

bool is_of_all_lanes(const llvm::Value& mask) {
    const auto* const constant = llvm::dyn_cast<llvm::Constant>(&mask);
    return constant != nullptr && constant->isAllOnesValue();
}

void answer_questions(llvm::Value& mask) {
    for (llvm::User* user : mask.users())
        if (auto* const question = llvm::dyn_cast<llvm::IntrinsicInst>(user);
            question && question->getIntrinsicID() == llvm::Intrinsic::vector_reduce_or)
            question->replaceAllUsesWith(llvm::ConstantInt::getTrue(question->getType()));
}

}  // namespace polder::compiler::workgroup
