#include "moved_invariants.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

bool MovedInvariants::move_out(llvm::Value& value) {
    auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (instruction == nullptr || loop_.isLoopInvariant(instruction))
        return true;
    if (staying_.contains(instruction))
        return false;
    const bool is_moved =
        !instruction->mayReadFromMemory() && llvm::isSafeToSpeculativelyExecute(instruction) &&
        llvm::all_of(instruction->operands(), [&](llvm::Use& operand) { return move_out(*operand); }) &&
        loop_.makeLoopInvariant(instruction, is_changed_, nullptr, nullptr, evolution_);
    if (!is_moved)
        staying_.insert(instruction);
    return is_moved;
}

}  // namespace polder::compiler::workgroup
