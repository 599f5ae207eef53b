#include "invariant_choices.h"

#include <array>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

// Whether the value can be computed before the loop from `depth` levels of instructions at most.
bool can_leave(const llvm::Value& value, const llvm::Loop& loop, unsigned depth = 4) {
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (instruction == nullptr || !loop.contains(instruction))
        return true;
    return depth > 0 && !llvm::isa<llvm::PHINode>(instruction) && !instruction->mayReadOrWriteMemory() &&
           llvm::isSafeToSpeculativelyExecute(instruction) &&
           llvm::all_of(instruction->operands(),
                        [&](const llvm::Use& use) { return can_leave(*use, loop, depth - 1); });
}

// The branch of which one side, or the edge itself, leads to `join` by way of `from`; null where the way has other beginnings or ends.
const llvm::BranchInst* branch_before(const llvm::BasicBlock& from, const llvm::BasicBlock& join) {
    const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(from.getTerminator());
    if (branch == nullptr || branch->isConditional())
        return branch;
    const llvm::BasicBlock* const before = from.getSinglePredecessor();
    return before != nullptr && from.getSingleSuccessor() == &join
               ? llvm::dyn_cast<llvm::BranchInst>(before->getTerminator())
               : nullptr;
}

struct Choice {
    llvm::Value *condition = nullptr, *if_true = nullptr, *if_false = nullptr;
};

// The values that `node` takes on the two sides of the branch; null where a side does not lead to it directly.
std::array<llvm::Value*, 2> values_by_side(const llvm::PHINode& node, const llvm::BranchInst& branch) {
    std::array<llvm::Value*, 2> values{};
    for (unsigned side = 0; side < 2; ++side) {
        const llvm::BasicBlock* const target = branch.getSuccessor(side);
        const llvm::BasicBlock* const from = target == node.getParent() ? branch.getParent() : target;
        if (const int i = node.getBasicBlockIndex(from); i >= 0)
            values.at(side) = node.getIncomingValue(static_cast<unsigned>(i));
    }
    return values;
}

// What `node` is when two ways of one branch meet in its block; nothing in other forms.
Choice choice_of(const llvm::PHINode& node) {
    if (node.getNumIncomingValues() != 2)
        return {};
    const llvm::BranchInst* const branch = branch_before(*node.getIncomingBlock(0), *node.getParent());
    if (branch == nullptr || !branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1) ||
        branch != branch_before(*node.getIncomingBlock(1), *node.getParent()))
        return {};
    const auto [if_true, if_false] = values_by_side(node, *branch);
    if (if_true == nullptr || if_false == nullptr)
        return {};
    return {branch->getCondition(), if_true, if_false};
}

bool choose_node_before(llvm::PHINode& node, llvm::Loop& loop) {
    const Choice choice = choice_of(node);
    if (choice.condition == nullptr || llvm::isa<llvm::Constant>(choice.condition) ||
        !can_leave(*choice.condition, loop) || !can_leave(*choice.if_true, loop) || !can_leave(*choice.if_false, loop))
        return false;
    bool changed = false;
    for (llvm::Value* value : {choice.condition, choice.if_true, choice.if_false})
        loop.makeLoopInvariant(value, changed);
    llvm::IRBuilder<> at(loop.getLoopPreheader()->getTerminator());
    node.replaceAllUsesWith(at.CreateSelect(choice.condition, choice.if_true, choice.if_false));
    node.eraseFromParent();
    return true;
}

}  // namespace

void choose_before(llvm::Loop& loop) {
    if (loop.getLoopPreheader() == nullptr)
        return;
    // A value may be chosen from chosen ones, whose blocks can come later in the list.
    for (bool changed = true; changed;) {
        changed = false;
        for (llvm::BasicBlock* block : loop.blocks())
            if (block != loop.getHeader())
                for (llvm::PHINode& node : llvm::make_early_inc_range(block->phis()))
                    changed |= choose_node_before(node, loop);
    }
}

}  // namespace polder::compiler::workgroup
