// LowerSwitch has made a tree of comparisons with constants of the switch (canonical_form.cpp). Three or more branches on comparisons of one uniform value
// with constants count as such a tree, of which each side is taken half of the time. Other branches are not judged: both of their sides count in full.
#include "uniform_arms.h"

#include <algorithm>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned comparisons_min = 3;

// The uniform value that the block's branch compares with a constant; null when there is none.
const llvm::Value* compared_at_end(const llvm::BasicBlock& block, const LaneShapes& shapes) {
    const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
    const auto* const comparison =
        branch && branch->isConditional() && branch->getSuccessor(0) != branch->getSuccessor(1)
            ? llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition())
            : nullptr;
    if (!comparison || !llvm::isa<llvm::ConstantInt>(comparison->getOperand(1)) ||
        !shapes.of(comparison->getOperand(0)).is_uniform())
        return nullptr;
    return comparison->getOperand(0);
}

}  // namespace

UniformArms::UniformArms(const LanePlan& plan, const LaneShapes& shapes) {
    llvm::DenseMap<const llvm::Value*, unsigned> comparisons;
    for (const llvm::BasicBlock* block : plan.blocks)
        if (const llvm::Value* value = compared_at_end(*block, shapes))
            ++comparisons[value];
    if (std::ranges::none_of(comparisons, [](const auto& counted) { return counted.second >= comparisons_min; }))
        return;
    const llvm::DominatorTree dominators(*plan.header->getParent());
    const auto chooses = [&](const llvm::BasicBlock& block) {
        const llvm::Value* const value = compared_at_end(block, shapes);
        return value != nullptr && comparisons.lookup(value) >= comparisons_min;
    };
    for (const llvm::BasicBlock* block : plan.blocks) {
        if (block == plan.header) {
            parts_[block] = 1;
            continue;
        }
        double part = 0;
        for (const llvm::BasicBlock* before : llvm::predecessors(block))
            part += parts_.lookup(before) * (chooses(*before) ? 1.0 / 2 : 1);  // 0 of what comes later, in a loop
        const auto* const node = dominators.getNode(block);
        parts_[block] = node && node->getIDom() ? std::min(part, part_of(*node->getIDom()->getBlock())) : part;
    }
}

double UniformArms::part_of(const llvm::BasicBlock& block) const {
    const auto found = parts_.find(&block);
    return found == parts_.end() ? 1 : found->second;
}

}  // namespace polder::compiler::workgroup
