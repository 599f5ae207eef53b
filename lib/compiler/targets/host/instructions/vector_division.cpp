#include "vector_division.h"

#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "targets/host/workgroup/vectorizer/code/lane_division.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/KnownBits.h>

namespace polder::compiler {
namespace {

constexpr unsigned divided_from = 4;

bool is_divided(const llvm::Instruction& instruction) {
    const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
    return instruction.isIntDivRem() && type != nullptr && type->getNumElements() >= divided_from &&
           workgroup::is_divided_in_lanes(*type->getElementType()) &&
           !llvm::isa<llvm::Constant>(instruction.getOperand(1));
}

}  // namespace

void divide_vectors(llvm::Function& function) {
    llvm::SmallVector<llvm::Instruction*> found;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (is_divided(instruction))
            found.push_back(&instruction);
    for (llvm::Instruction* const division : found) {
        const llvm::SimplifyQuery query(function.getParent()->getDataLayout(), division);
        llvm::Value *const numbers = division->getOperand(0), *const divisors = division->getOperand(1);
        const bool are_positive = llvm::computeKnownBits(numbers, query).isNonNegative() &&
                                  llvm::computeKnownBits(divisors, query).isNonNegative();
        llvm::IRBuilder<> builder(division);
        llvm::Value* const result =
            workgroup::divide_lanes(builder, {.opcode = llvm::cast<llvm::BinaryOperator>(division)->getOpcode(),
                                              .numbers = numbers,
                                              .divisors = divisors,
                                              .divisor = llvm::getSplatValue(divisors),
                                              .are_positive = are_positive});
        division->replaceAllUsesWith(result);
        division->eraseFromParent();
    }
}

}  // namespace polder::compiler
