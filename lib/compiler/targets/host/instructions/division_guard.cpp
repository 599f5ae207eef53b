// Each division gets a divisor that is neither 0 nor, where it is signed, -1; the quotient by -1 is chosen afterwards. Comparisons of quotients
// with 0 need no division.
#include "division_guard.h"

#include "targets/host/workgroup/work_items/division_kinds.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/KnownBits.h>

namespace polder::compiler {
namespace {

using namespace llvm::PatternMatch;

bool is_division(const llvm::Instruction& instruction) {
    switch (instruction.getOpcode()) {
    case llvm::Instruction::SDiv:
    case llvm::Instruction::UDiv:
    case llvm::Instruction::SRem:
    case llvm::Instruction::URem: return true;
    default: return false;
    }
}

// True for every element of a constant divisor that is neither 0 nor, in a signed division, -1.
bool is_harmless_constant(const llvm::Value& divisor) {
    const auto* constant = llvm::dyn_cast<llvm::Constant>(&divisor);
    if (constant == nullptr)
        return false;
    const auto is_harmless = [](const llvm::Constant* element) {
        const auto* integer = llvm::dyn_cast_or_null<llvm::ConstantInt>(element);
        return integer != nullptr && !integer->isZero() && !integer->isMinusOne();
    };
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(constant->getType());
    if (vector == nullptr)
        return is_harmless(constant);
    for (unsigned i = 0; i < vector->getNumElements(); ++i)
        if (!is_harmless(constant->getAggregateElement(i)))
            return false;
    return true;
}

// The divisor that is used depends on the divisor alone, so that it is the same for all work-items where the divisor is.
void guard(llvm::BinaryOperator& division) {
    llvm::Value* divisor = division.getOperand(1);
    const llvm::SimplifyQuery query(division.getModule()->getDataLayout(), &division);
    const bool may_be_zero = !llvm::isKnownNonZero(divisor, query);
    const bool may_overflow =
        is_signed_division(division.getOpcode()) && !llvm::computeKnownBits(divisor, query).isNonNegative();
    if (is_harmless_constant(*divisor) || (!may_be_zero && !may_overflow))
        return;
    llvm::IRBuilder<> builder(&division);
    llvm::Type* type = divisor->getType();
    llvm::Value* one = llvm::ConstantInt::get(type, 1);
    // Frozen, so that the value that is tested is the value that divides.
    divisor = builder.CreateFreeze(divisor);
    if (!may_overflow) {
        division.setOperand(1, builder.CreateBinaryIntrinsic(llvm::Intrinsic::umax, divisor, one));
        return;
    }
    // Neither 0 nor -1: a number divided by -1 is its negative, without remainder.
    llvm::Value* is_bad = builder.CreateICmpULT(builder.CreateAdd(divisor, one), llvm::ConstantInt::get(type, 2));
    division.setOperand(1, builder.CreateSelect(is_bad, one, divisor));
    if (division.getOpcode() == llvm::Instruction::SRem)
        return;
    builder.SetInsertPoint(division.getNextNode());
    llvm::Value* is_minus_one = builder.CreateICmpEQ(divisor, llvm::Constant::getAllOnesValue(type));
    llvm::Value* negative = builder.CreateNeg(division.getOperand(0));
    llvm::Value* result = builder.CreateSelect(is_minus_one, negative, &division);
    division.replaceUsesWithIf(result, [&](const llvm::Use& use) { return use.getUser() != result; });
}

// x / y == 0 becomes y > x, which needs no guard. Where y is 0, programs made for GPUs expect false: there x / 0 has all bits set.
void compare_instead(llvm::BinaryOperator& division) {
    for (llvm::User* const user : llvm::make_early_inc_range(division.users())) {
        auto* const comparison = llvm::dyn_cast<llvm::ICmpInst>(user);
        if (comparison == nullptr || !comparison->isEquality() || !match(comparison->getOperand(1), m_Zero()))
            continue;
        llvm::IRBuilder<> builder(comparison);
        llvm::Value* const is_zero = builder.CreateICmpUGT(division.getOperand(1), division.getOperand(0));
        comparison->replaceAllUsesWith(
            comparison->getPredicate() == llvm::ICmpInst::ICMP_EQ ? is_zero : builder.CreateNot(is_zero));
        comparison->eraseFromParent();
    }
}

}  // namespace

void guard_divisions(llvm::Function& function) {
    llvm::SmallVector<llvm::BinaryOperator*, 16> divisions;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (is_division(instruction))
            divisions.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
    for (llvm::BinaryOperator* division : divisions) {
        if (division->getOpcode() == llvm::Instruction::UDiv)
            compare_instead(*division);
        guard(*division);
    }
}

}  // namespace polder::compiler
