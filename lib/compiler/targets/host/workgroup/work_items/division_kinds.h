// Which of the four integer divisions an opcode is.
#pragma once

#include <llvm/IR/Instruction.h>

namespace polder::compiler {

[[nodiscard]] inline bool is_signed_division(unsigned opcode) {
    return opcode == llvm::Instruction::SDiv || opcode == llvm::Instruction::SRem;
}

[[nodiscard]] inline bool is_remainder(unsigned opcode) {
    return opcode == llvm::Instruction::SRem || opcode == llvm::Instruction::URem;
}

}  // namespace polder::compiler
