// Integer division of lanes by quotients of floating-point numbers. Processors divide vectors of these, but integers one by one.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace polder::compiler::workgroup {

struct LaneDivision {
    llvm::Instruction::BinaryOps opcode;  // one of the four integer divisions
    llvm::Value *numbers,
        *divisors;  // vectors; the divisors of lanes whose result is used are not 0, nor -1 where that overflows
    llvm::Value* divisor = nullptr;  // the scalar, when all lanes have the same
    bool are_positive = false;  // neither the numbers nor the divisors have their highest bit set
};
[[nodiscard]] llvm::Value* divide_lanes(llvm::IRBuilder<>& builder, const LaneDivision& division);

}  // namespace polder::compiler::workgroup
