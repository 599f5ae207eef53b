#include "hoisting.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

// A load of the launch's parameters: never changes, never traps.
bool is_launch_load(const llvm::Instruction& instruction) {
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    if (!load || !load->hasMetadata(llvm::LLVMContext::MD_invariant_load))
        return false;
    return llvm::isa<llvm::Argument>(llvm::getUnderlyingObject(load->getPointerOperand(), 0));
}

} // namespace

bool is_movable(const llvm::Instruction& instruction) {
    if (llvm::isa<llvm::PHINode>(instruction) || llvm::isa<llvm::AllocaInst>(instruction) || instruction.isTerminator())
        return false;
    if (is_launch_load(instruction))
        return true;
    return !instruction.mayReadOrWriteMemory() && llvm::isSafeToSpeculativelyExecute(&instruction);
}

void hoist_uniform_values(llvm::Function& function, llvm::BasicBlock& prologue, const Uniformity& uniformity) {
    const auto is_outside = [&](llvm::Value* value) {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
        return !instruction || instruction->getParent() == &prologue;
    };
    for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function)) {
        if (block == &prologue)
            continue;
        for (llvm::Instruction& instruction : llvm::make_early_inc_range(*block))
            if (uniformity.is_uniform(&instruction) && is_movable(instruction) &&
                llvm::all_of(instruction.operands(), is_outside))
                instruction.moveBefore(prologue.getTerminator()->getIterator());
    }
}

} // namespace polder::compiler::workgroup
