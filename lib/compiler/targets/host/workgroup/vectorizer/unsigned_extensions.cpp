#include "unsigned_extensions.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

// Whether the step of an operand may be the result's: other integer operations make what varies in this analysis, guesses apart.
bool passes_step_on(const llvm::Instruction& instruction) {
    switch (instruction.getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Or:
    case llvm::Instruction::And:
    case llvm::Instruction::Mul:
    case llvm::Instruction::Shl:
    case llvm::Instruction::AShr:
    case llvm::Instruction::LShr:
    case llvm::Instruction::Trunc:
    case llvm::Instruction::Freeze:
    case llvm::Instruction::PHI: return instruction.getType()->isIntegerTy();
    default: return false;
    }
}

}  // namespace

bool is_extended_as_unsigned(const llvm::Instruction& value) {
    constexpr size_t values_max = 32;
    llvm::SmallPtrSet<const llvm::Instruction*, 16> seen{&value};
    llvm::SmallVector<const llvm::Instruction*> todo{&value};
    while (!todo.empty()) {
        for (const llvm::User* user : todo.pop_back_val()->users()) {
            const auto* instruction = llvm::cast<llvm::Instruction>(user);
            if (const auto* extension = llvm::dyn_cast<llvm::ZExtInst>(instruction);
                extension && !extension->hasNonNeg())
                return true;
            if (passes_step_on(*instruction) && seen.insert(instruction).second)
                todo.push_back(instruction);
        }
        if (seen.size() > values_max)
            return true;
    }
    return false;
}

}  // namespace polder::compiler::workgroup
