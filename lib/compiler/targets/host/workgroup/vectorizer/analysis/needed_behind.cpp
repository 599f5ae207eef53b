#include "needed_behind.h"

#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {
namespace {

// A conversion in another block repeats in more bits the operations that made a strided number (LaneCode::widened), so it needs their operands,
// too.
bool is_used_behind(const llvm::Instruction& instruction, const LaneShapes& shapes) {
    const bool may_be_widened = instruction.getType()->isIntegerTy() && shapes.of(&instruction).is_strided();
    return may_be_widened || llvm::any_of(instruction.users(), [&](const llvm::User* user) {
               return llvm::isa<llvm::PHINode>(user) ||
                      llvm::cast<llvm::Instruction>(user)->getParent() != instruction.getParent();
           });
}

}  // namespace

// Of an address that is used in another block, also what it is computed from: the check of a likely step begins there (LaneCode::likely_step). The address
// may be computed in the other block, from an index of this one.
llvm::SmallPtrSet<const llvm::Instruction*, 16> needed_behind(const llvm::BasicBlock& block, const LaneShapes& shapes) {
    llvm::SmallPtrSet<const llvm::Instruction*, 16> needed, of_addresses;
    for (const llvm::Instruction& instruction : llvm::reverse(block)) {
        const bool is_of_address = of_addresses.contains(&instruction);
        if (!is_of_address && !is_used_behind(instruction, shapes))
            continue;
        needed.insert(&instruction);
        const llvm::Type* const type = instruction.getType();
        if ((!is_of_address && !type->isPointerTy() && !type->isIntegerTy()) || instruction.mayReadFromMemory())
            continue;
        for (const llvm::Value* operand : instruction.operands())
            if (const auto* made_here = llvm::dyn_cast<llvm::Instruction>(operand);
                made_here && made_here->getParent() == &block)
                of_addresses.insert(made_here);
    }
    return needed;
}

}  // namespace polder::compiler::workgroup
