// The instructions of a block are counted; a branch costs about as much as a few of them, and more where it is predicted badly.
#include "skipped_code.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

// Whether the condition is uniform, or an order comparison (such as an id's) with a constant or a value that is computed before the loops
// over work-items.
bool is_bound_of_launch(const llvm::Value& condition, const LaneShapes& shapes) {
    using namespace llvm::PatternMatch;
    const llvm::Value *left = nullptr, *right = nullptr;
    if (match(&condition, m_LogicalOp(m_Value(left), m_Value(right))))
        return is_bound_of_launch(*left, shapes) && is_bound_of_launch(*right, shapes);
    if (const auto* frozen = llvm::dyn_cast<llvm::FreezeInst>(&condition))
        return is_bound_of_launch(*frozen->getOperand(0), shapes);
    const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&condition);
    const auto is_known_before = [](const llvm::Value* value) {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
        return !instruction || instruction->getParent()->isEntryBlock();
    };
    return shapes.of(&condition).is_uniform() ||
           (compare && !compare->isEquality() && llvm::any_of(compare->operands(), is_known_before));
}

// Accesses without a step count once for each lane.
bool is_long(const llvm::BasicBlock& block, const LaneShapes& shapes, unsigned lanes) {
    constexpr unsigned long_body = 24;
    unsigned cost = 0;
    for (const llvm::Instruction& instruction : block) {
        const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
        cost += address && !shapes.of(address).is_strided() ? lanes : 1;
    }
    return cost >= long_body;
}

}  // namespace

bool is_worth_skipping(const llvm::BasicBlock& block, const LanePlan& plan, const LaneShapes& shapes, unsigned lanes) {
    const llvm::BasicBlock* const before = block.getSinglePredecessor();
    const llvm::BasicBlock* const after = block.getSingleSuccessor();
    const auto* branch = before ? llvm::dyn_cast<llvm::BranchInst>(before->getTerminator()) : nullptr;
    if (plan.kind == LoopKind::sub_group || !branch || !branch->isConditional() || !after || after->hasNPredecessors(1))
        return false;
    const bool has_access = llvm::any_of(block, [](const llvm::Instruction& instruction) {
        return llvm::getLoadStorePointerOperand(&instruction) != nullptr;
    });
    return is_long(block, shapes, lanes) || (has_access && !is_bound_of_launch(*branch->getCondition(), shapes));
}

bool is_worth_skipping(const llvm::Loop& loop, const llvm::Value& entering, const LanePlan& plan,
                       const LaneShapes& shapes, unsigned lanes) {
    return plan.kind != LoopKind::sub_group && !llvm::isa<llvm::Constant>(entering) &&
           llvm::any_of(loop.blocks(), [&](const llvm::BasicBlock* block) { return is_long(*block, shapes, lanes); });
}

}  // namespace polder::compiler::workgroup
