#include "huge_reciprocals.h"

#include "machine/zen.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler {
namespace {

using namespace llvm::PatternMatch;

// The library permits a reciprocal and nothing else (root_wide.inc); a program's options permit more, and its own quotients keep their values.
bool is_native_reciprocal(const llvm::Instruction& instruction) {
    return instruction.getOpcode() == llvm::Instruction::FDiv && instruction.getType()->isFloatTy() &&
           instruction.hasAllowReciprocal() && !instruction.hasAllowReassoc() && !instruction.hasNoInfs() &&
           match(instruction.getOperand(0), m_FPOne()) && !llvm::isa<llvm::Constant>(instruction.getOperand(1)) &&
           !match(instruction.getOperand(1), m_Intrinsic<llvm::Intrinsic::sqrt>());
}

}  // namespace

void flush_huge_reciprocals(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (is_zen(machine))
        return;
    for (llvm::Instruction& division : llvm::instructions(function)) {
        if (!is_native_reciprocal(division))
            continue;
        llvm::IRBuilder<> builder(&division);
        llvm::Value* const divisor = division.getOperand(1);
        llvm::Type* const type = divisor->getType();
        llvm::Value* const magnitude = builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, divisor);
        llvm::Value* const infinity =
            builder.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, llvm::ConstantFP::getInfinity(type), divisor);
        llvm::Value* const is_huge = builder.CreateFCmpOGT(magnitude, llvm::ConstantFP::get(type, 0x1p126));
        division.setOperand(1, builder.CreateSelect(is_huge, infinity, divisor));
    }
}

}  // namespace polder::compiler
