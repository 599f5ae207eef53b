#include "recomputation.h"

#include <llvm/IR/Type.h>

namespace polder::compiler::workgroup {

bool is_cheap_to_recompute(const llvm::Instruction& instruction) {
    if (!instruction.getType()->isIntOrPtrTy())
        return false;
    switch (instruction.getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Mul:
    case llvm::Instruction::Shl:
    case llvm::Instruction::LShr:
    case llvm::Instruction::AShr:
    case llvm::Instruction::And:
    case llvm::Instruction::Or:
    case llvm::Instruction::Xor:
    case llvm::Instruction::GetElementPtr:
    case llvm::Instruction::Trunc:
    case llvm::Instruction::ZExt:
    case llvm::Instruction::SExt:
    case llvm::Instruction::AddrSpaceCast:
    case llvm::Instruction::ICmp: return true;
    default: return false;
    }
}

}  // namespace polder::compiler::workgroup
