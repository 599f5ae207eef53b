// LLVM's passes move a computation only into a block that dominates all uses, and their pipelines move few. Operands follow their users, so each one is
// examined again after a user was moved. A moved instruction begins its block: those that were moved before are its users.
#include "rare_values.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Local.h>

namespace polder::compiler::workgroup {

namespace {

class RareValues {
public:
    RareValues(llvm::ArrayRef<RareBlocks> rare, llvm::BasicBlock& header, const llvm::BasicBlock& end) : rare_(rare) {
        for (const auto [number, blocks] : llvm::enumerate(rare)) {
            numbers_[blocks.lanes] = number;
            numbers_[blocks.apart] = number;
        }
        llvm::SmallVector<llvm::BasicBlock*> todo{&header};
        while (!todo.empty())
            if (llvm::BasicBlock* const block = todo.pop_back_val(); block != &end && loop_.insert(block))
                todo.append(llvm::succ_begin(block), llvm::succ_end(block));
    }

    void move() {
        forget_unused();
        for (const RareBlocks& blocks : rare_)
            for (llvm::BasicBlock* block : {blocks.lanes, blocks.apart})
                for (llvm::Instruction& instruction : *block)
                    examine_operands(instruction);
        // Values that a row does not use either, and that the phi behind the rare blocks takes from them.
        for (const RareBlocks& blocks : rare_)
            for (llvm::BasicBlock* block : {blocks.lanes, blocks.apart})
                for (llvm::BasicBlock* next : llvm::successors(block))
                    for (llvm::PHINode& phi : next->phis())
                        examine(phi.getIncomingValueForBlock(block));
        while (!todo_.empty())
            if (llvm::Instruction* const next = todo_.pop_back_val(); is_movable(*next))
                move(*next);
    }

private:
    // The addresses of elements that were loaded together with others.
    void forget_unused() {
        llvm::SmallVector<llvm::WeakTrackingVH> unused;
        for (llvm::BasicBlock* block : loop_)
            for (llvm::Instruction& instruction : *block)
                if (llvm::isInstructionTriviallyDead(&instruction))
                    unused.emplace_back(&instruction);
        llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(unused);
    }
    void examine(llvm::Value* value) {
        auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
        if (instruction && loop_.contains(instruction->getParent()) && !numbers_.contains(instruction->getParent()))
            todo_.insert(instruction);
    }
    void examine_operands(llvm::Instruction& instruction) {
        if (!llvm::isa<llvm::PHINode>(instruction))
            for (llvm::Value* operand : instruction.operands())
                examine(operand);
    }
    static llvm::BasicBlock* block_of(const llvm::Use& use) {
        auto* const user = llvm::cast<llvm::Instruction>(use.getUser());
        auto* const phi = llvm::dyn_cast<llvm::PHINode>(user);
        return phi ? phi->getIncomingBlock(use) : user->getParent();
    }
    // Copies are small: a value that many accesses have in common is computed once.
    bool is_movable(const llvm::Instruction& instruction) const {
        constexpr unsigned uses_max = 16;
        return !llvm::isa<llvm::PHINode, llvm::AllocaInst>(instruction) && !instruction.isTerminator() &&
               !instruction.mayReadOrWriteMemory() && !instruction.mayHaveSideEffects() &&
               !instruction.getType()->isTokenTy() && !instruction.hasNUsesOrMore(uses_max) &&
               !instruction.use_empty() &&
               llvm::all_of(instruction.uses(), [&](const llvm::Use& use) { return numbers_.contains(block_of(use)); });
    }
    void move(llvm::Instruction& instruction) {
        struct UsesOfAccess {
            llvm::SmallVector<llvm::Use*, 4> all;
            bool are_apart = true;
        };
        llvm::SmallMapVector<size_t, UsesOfAccess, 4> uses;
        for (llvm::Use& use : instruction.uses()) {
            llvm::BasicBlock* const block = block_of(use);
            const size_t number = numbers_[block];
            uses[number].all.push_back(&use);
            uses[number].are_apart &= block == rare_[number].apart;
        }
        bool is_moved = false;
        for (const auto& [number, its] : uses) {
            llvm::BasicBlock* const to = its.are_apart ? rare_[number].apart : rare_[number].lanes;
            llvm::Instruction* const here = is_moved ? instruction.clone() : &instruction;
            if (is_moved)
                here->insertBefore(*to, to->getFirstInsertionPt());
            else
                here->moveBefore(*to, to->getFirstInsertionPt());
            for (llvm::Use* use : its.all)
                use->set(here);
            is_moved = true;
        }
        examine_operands(instruction);
    }

    const llvm::ArrayRef<RareBlocks> rare_;
    llvm::SmallSetVector<llvm::BasicBlock*, 16> loop_;
    llvm::DenseMap<const llvm::BasicBlock*, size_t> numbers_;
    llvm::SmallSetVector<llvm::Instruction*, 16> todo_;
};

}  // namespace

void move_rare_values(llvm::ArrayRef<RareBlocks> rare, llvm::BasicBlock& header, const llvm::BasicBlock& end) {
    if (!rare.empty())
        RareValues(rare, header, end).move();
}

}  // namespace polder::compiler::workgroup
