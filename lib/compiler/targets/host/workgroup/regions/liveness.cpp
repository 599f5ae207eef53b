#include "liveness.h"

#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

Liveness::Liveness(llvm::Function& function, const llvm::BasicBlock& prologue) {
    collect(function, prologue);
    for (const llvm::BasicBlock& block : function) {
        const unsigned count = values_.size();
        sets_.try_emplace(&block, Sets{llvm::BitVector(count), llvm::BitVector(count), llvm::BitVector(count),
                                       llvm::BitVector(count)});
    }
    find_uses(function);
    iterate(function);
}

void Liveness::collect(llvm::Function& function, const llvm::BasicBlock& prologue) {
    for (llvm::BasicBlock& block : function) {
        if (&block == &prologue)
            continue;
        for (llvm::Instruction& instruction : block) {
            if (local_id_dimension(instruction))
                continue;
            const auto is_elsewhere = [&](const llvm::User* user) {
                const auto* other = llvm::cast<llvm::Instruction>(user);
                return other->getParent() != &block || llvm::isa<llvm::PHINode>(other);
            };
            if (llvm::none_of(instruction.users(), is_elsewhere))
                continue;
            number_[&instruction] = values_.size();
            values_.push_back(&instruction);
        }
    }
}

void Liveness::find_uses(llvm::Function& function) {
    for (llvm::BasicBlock& block : function) {
        Sets& sets = sets_[&block];
        for (llvm::Instruction& instruction : block) {
            if (const auto found = number_.find(&instruction); found != number_.end())
                sets.defined.set(found->second);
            for (const llvm::Use& operand : instruction.operands()) {
                const auto found = number_.find(operand.get());
                if (found == number_.end())
                    continue;
                if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction))
                    sets_[phi->getIncomingBlock(operand)].at_end.set(found->second);
                else if (values_[found->second]->getParent() != &block)
                    sets.used.set(found->second);
            }
        }
    }
}

void Liveness::iterate(llvm::Function& function) {
    const llvm::SmallVector<llvm::BasicBlock*> order(llvm::post_order(&function));
    for (bool changed = true; changed;) {
        changed = false;
        for (llvm::BasicBlock* block : order) {
            Sets& sets = sets_[block];
            llvm::BitVector live = sets.at_end;
            for (llvm::BasicBlock* successor : llvm::successors(block))
                live |= sets_[successor].live_in;
            live.reset(sets.defined);
            live |= sets.used;
            if (live == sets.live_in)
                continue;
            sets.live_in = std::move(live);
            changed = true;
        }
    }
}

llvm::SmallVector<llvm::Instruction*> Liveness::live_in(const llvm::BasicBlock& block) const {
    llvm::SmallVector<llvm::Instruction*> result;
    const auto found = sets_.find(&block);
    if (found == sets_.end())
        return result;
    for (const unsigned number : found->second.live_in.set_bits())
        result.push_back(values_[number]);
    return result;
}

} // namespace polder::compiler::workgroup
