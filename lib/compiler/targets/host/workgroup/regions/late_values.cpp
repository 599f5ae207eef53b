// A value is copied to each block that uses it, with the instructions between it and its leaves: ids, and values that all work-items share. The copies
// compute the same: a leaf's definition dominates the value's, which dominates the use, so no path leads from a newer leaf to the use around
// the value.
#include "late_values.h"

#include "liveness.h"
#include "recomputation.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

class LateValues {
public:
    LateValues(const llvm::BasicBlock& prologue, const Uniformity& uniformity)
        : prologue_(prologue), uniformity_(uniformity) {}

    // Whether a few cheap instructions compute `value` from its leaves, of which one is neither an id nor computed in the prologue.
    bool is_late(const llvm::Instruction& value) {
        needs_shared_ = false;
        return cost_of(value, recompute_cost_max) >= 0 && needs_shared_;
    }

    void move_to_uses(llvm::Instruction& value) {
        llvm::DenseMap<llvm::BasicBlock*, llvm::Value*> copies;
        for (llvm::Use& use : llvm::make_early_inc_range(value.uses())) {
            auto* const user = llvm::cast<llvm::Instruction>(use.getUser());
            auto* const phi = llvm::dyn_cast<llvm::PHINode>(user);
            llvm::BasicBlock* const block = phi ? phi->getIncomingBlock(use) : user->getParent();
            if (block == value.getParent())
                continue;
            llvm::Value*& copy = copies[block];
            if (!copy)
                copy = copied(value, block->getFirstInsertionPt());
            if (phi)  // a predecessor that is listed several times has one value
                phi->setIncomingValueForBlock(block, copy);
            else
                use.set(copy);
        }
    }

private:
    [[nodiscard]] bool is_leaf(const llvm::Value& value) const {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        return !instruction || instruction->getParent() == &prologue_ || local_id_dimension(*instruction) ||
               uniformity_.is_uniform(instruction);
    }

    // The number of instructions, or -1 when there are more than `most`. Each call but those for leaves counts one, so that long chains end early.
    int cost_of(const llvm::Value& value, int most) {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (is_leaf(value)) {
            needs_shared_ |= instruction && instruction->getParent() != &prologue_ && !local_id_dimension(*instruction);
            return llvm::isa<llvm::AllocaInst>(value) ? -1 : 0;
        }
        if (most == 0 || !is_cheap_to_recompute(*instruction))
            return -1;
        int cost = 1;
        for (const llvm::Use& operand : instruction->operands()) {
            const int its = cost_of(*operand, most - cost);
            if (its < 0)
                return -1;
            cost += its;
        }
        return cost;
    }

    llvm::Value* copied(llvm::Value& value, llvm::BasicBlock::iterator at) {
        if (is_leaf(value))
            return &value;
        llvm::Instruction* const copy = llvm::cast<llvm::Instruction>(value).clone();
        for (llvm::Use& operand : copy->operands())
            operand.set(copied(*operand, at));
        copy->insertBefore(at);
        copy->setName(value.getName());
        return copy;
    }

    const llvm::BasicBlock& prologue_;
    const Uniformity& uniformity_;
    bool needs_shared_ = false;
};

}  // namespace

void compute_late(llvm::Function& function, const llvm::BasicBlock& prologue, const Cuts& cuts,
                  const Uniformity& uniformity) {
    const Liveness liveness(function, prologue);
    llvm::SmallSetVector<llvm::Instruction*, 16> values;
    LateValues late(prologue, uniformity);
    for (const llvm::BasicBlock* cut : cuts)
        for (llvm::Instruction* value : liveness.live_in(*cut))
            if (!uniformity.is_uniform(value) && late.is_late(*value))
                values.insert(value);
    // From the last to the first: the copies of a value use others of them no more.
    for (llvm::Instruction* value : llvm::reverse(values))
        late.move_to_uses(*value);
}

}  // namespace polder::compiler::workgroup
