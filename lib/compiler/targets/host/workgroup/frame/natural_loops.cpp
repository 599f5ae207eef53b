// All edges to the entries of a loop lead to a new block, its only entry, which branches to the entry that a number chooses. Values that cross blocks
// of the loop are kept in memory meanwhile, because the new block would come between their definitions and their uses.
//
// LLVM's FixIrreducible is not used: that of LLVM 22 gives phi nodes wrong values where such loops nest and a block branches to two
// entries, and it changes all loops of a function.
#include "natural_loops.h"

#include "simplify.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/CycleAnalysis.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LowerSwitch.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

namespace polder::compiler::workgroup {

namespace {

using Blocks = llvm::SmallSetVector<llvm::BasicBlock*, 8>;
using IsChosen = llvm::function_ref<bool(const llvm::BasicBlock&)>;

// An outermost cycle with several entries in `cycle`, if that is within a chosen loop.
const llvm::Cycle* find_in(const llvm::Cycle& cycle, IsChosen chosen, bool is_within) {
    if (!cycle.isReducible() && is_within)
        return &cycle;
    is_within = is_within || chosen(*cycle.getHeader());
    for (const llvm::Cycle* inner : cycle.children())
        if (const llvm::Cycle* found = find_in(*inner, chosen, is_within))
            return found;
    return nullptr;
}

class NaturalLoops {
public:
    NaturalLoops(llvm::Function& function, IsChosen chosen, bool are_all)
        : function_(function), chosen_(chosen), are_all_(are_all) {}

    bool find() {
        cycles_.clear();
        cycles_.compute(function_);
        cycle_ = nullptr;
        for (const llvm::Cycle* cycle : cycles_.toplevel_cycles())
            if (cycle_ == nullptr)
                cycle_ = find_in(*cycle, chosen_, are_all_);
        return cycle_ != nullptr;
    }

    void give_one_entry() {
        const Blocks entries(cycle_->entries().begin(), cycle_->entries().end());
        const Blocks blocks(cycle_->block_begin(), cycle_->block_end());
        keep_in_memory(entries, blocks);
        llvm::IRBuilder<> at(&*function_.getEntryBlock().begin());
        llvm::AllocaInst* const number = at.CreateAlloca(at.getInt32Ty(), nullptr, "entry");
        slots_.push_back(number);
        llvm::BasicBlock* choice = make_block("entries");
        redirect(entries, *choice, *number);
        at.SetInsertPoint(choice);
        llvm::Value* const chosen = at.CreateLoad(at.getInt32Ty(), number);
        for (unsigned i = 0; i + 2 < entries.size(); ++i) {
            llvm::BasicBlock* const others = make_block("entries");
            at.CreateCondBr(at.CreateICmpEQ(chosen, at.getInt32(i)), entries[i], others);
            at.SetInsertPoint(others);
        }
        const auto last = static_cast<unsigned>(entries.size() - 1);
        at.CreateCondBr(at.CreateICmpEQ(chosen, at.getInt32(last)), entries[last], entries[last - 1]);
    }

    void promote() {
        llvm::DominatorTree dominators(function_);
        llvm::PromoteMemToReg(slots_, dominators);
    }

private:
    llvm::BasicBlock* make_block(const char* name) {
        return llvm::BasicBlock::Create(function_.getContext(), name, &function_);
    }

    // Each edge to an entry stores the entry's number and leads to `to`.
    void redirect(const Blocks& entries, llvm::BasicBlock& to, llvm::AllocaInst& number) {
        for (unsigned i = 0; i < entries.size(); ++i)
            for (llvm::BasicBlock* from : Blocks(llvm::pred_begin(entries[i]), llvm::pred_end(entries[i]))) {
                llvm::BasicBlock* const edge = make_block("enter");
                from->getTerminator()->replaceSuccessorWith(entries[i], edge);
                llvm::IRBuilder<> at(edge);
                at.CreateStore(at.getInt32(i), &number);
                at.CreateBr(&to);
            }
    }

    void keep_in_memory(const Blocks& entries, const Blocks& blocks) {
        llvm::SmallVector<llvm::AllocaInst*> slots;
        const auto keep = [&](llvm::AllocaInst* slot) {
            if (slot)  // none for a value without uses
                slots.push_back(slot);
        };
        for (llvm::BasicBlock* block : blocks)
            for (llvm::PHINode* phi : llvm::SmallVector<llvm::PHINode*>(llvm::make_pointer_range(block->phis())))
                keep(llvm::DemotePHIToStack(phi));
        for (llvm::BasicBlock* block : blocks) {
            llvm::SmallVector<llvm::Instruction*> values;
            for (llvm::Instruction& instruction : *block)
                if (instruction.isUsedOutsideOfBlock(block))
                    values.push_back(&instruction);
            for (llvm::Instruction* value : values)
                keep(llvm::DemoteRegToStack(*value));
        }
        forget_before(entries, blocks, slots);
        slots_.append(slots);
    }

    // No value of a loop lives until the loop is entered again. PromoteMemToReg would not know it, because the new block leads to all uses, and would
    // pass on values from one work-item to the next.
    static void forget_before(const Blocks& entries, const Blocks& blocks, llvm::ArrayRef<llvm::AllocaInst*> slots) {
        Blocks before;
        for (llvm::BasicBlock* entry : entries)
            for (llvm::BasicBlock* from : llvm::predecessors(entry))
                if (!blocks.contains(from))
                    before.insert(from);
        for (llvm::BasicBlock* block : before) {
            llvm::IRBuilder<> at(block, block->getFirstNonPHIOrDbgOrAlloca());  // the slots may be in this block
            for (llvm::AllocaInst* slot : slots)
                at.CreateStore(llvm::PoisonValue::get(slot->getAllocatedType()), slot);
        }
    }

    llvm::Function& function_;
    const IsChosen chosen_;
    const bool are_all_;
    llvm::CycleInfo cycles_;
    const llvm::Cycle* cycle_ = nullptr;
    llvm::SmallVector<llvm::AllocaInst*> slots_;
};

void make_natural(llvm::Function& function, IsChosen chosen, bool are_all, llvm::TargetMachine* target) {
    NaturalLoops loops(function, chosen, are_all);
    if (!loops.find())
        return;
    with_analyses(target,
                  [&](llvm::FunctionAnalysisManager& analyses) { llvm::LowerSwitchPass().run(function, analyses); });
    while (loops.find())
        loops.give_one_entry();
    loops.promote();
}

}  // namespace

void make_loops_natural(llvm::Function& function, llvm::TargetMachine* target) {
    make_natural(function, [](const llvm::BasicBlock&) { return true; }, true, target);
}

void make_loops_natural_within(IsChosen chosen, llvm::Function& function, llvm::TargetMachine* target) {
    make_natural(function, chosen, false, target);
}

}  // namespace polder::compiler::workgroup
