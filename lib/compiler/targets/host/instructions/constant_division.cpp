// The factors and shifts are those of Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (1994), which LLVM computes.
#include "constant_division.h"

#include "targets/host/workgroup/work_items/division_kinds.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/DivisionByConstantInfo.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Target/TargetMachine.h>
#include <utility>

namespace polder::compiler {
namespace {

constexpr unsigned element_bits = 64, half_bits = 32, elements_min = 4;

// The divisor, where the instruction divides such vectors by a constant for which shifts are not enough.
const llvm::APInt* divisor_of(const llvm::Instruction& instruction) {
    const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
    const llvm::APInt* divisor = nullptr;
    const bool is_by_constant =
        instruction.isIntDivRem() && type != nullptr && type->getNumElements() >= elements_min &&
        type->getElementType()->isIntegerTy(element_bits) &&
        llvm::PatternMatch::match(instruction.getOperand(1), llvm::PatternMatch::m_APInt(divisor));
    if (!is_by_constant || divisor->isZero())
        return nullptr;
    return (is_signed_division(instruction.getOpcode()) ? divisor->abs() : *divisor).isPowerOf2() ? nullptr : divisor;
}

class Quotient {
public:
    Quotient(llvm::Instruction& division, const llvm::APInt& divisor)
        : at_(&division), type_(division.getType()), divisor_(divisor) {}

    llvm::Value* of(llvm::Value* numbers, bool is_signed, const llvm::KnownBits& known) {
        return is_signed && (divisor_.isNegative() || !known.isNonNegative())
                   ? of_signed(numbers)
                   : of_unsigned(numbers, known.countMinLeadingZeros());
    }

private:
    llvm::Constant* all(const llvm::APInt& number) const { return llvm::ConstantInt::get(type_, number); }
    llvm::Constant* all(uint64_t number) const { return llvm::ConstantInt::get(type_, number); }
    llvm::Value* low(llvm::Value* numbers) { return at_.CreateAnd(numbers, all(UINT32_MAX)); }
    llvm::Value* high(llvm::Value* numbers) { return at_.CreateLShr(numbers, all(half_bits)); }

    // The upper 64 bits of the products of unsigned numbers with `factor`.
    llvm::Value* upper_product(llvm::Value* numbers, const llvm::APInt& factor) {
        llvm::Constant* const factor_low = all(factor.getLoBits(half_bits));
        llvm::Constant* const factor_high = all(factor.lshr(half_bits));
        llvm::Value *const below = low(numbers), *const above = high(numbers);
        llvm::Value* const crossed = at_.CreateMul(below, factor_high);
        // At most (2^32 - 1)^2 + 2 (2^32 - 1), which is 2^64 - 1.
        llvm::Value* const middle = at_.CreateAdd(at_.CreateAdd(high(at_.CreateMul(below, factor_low)), low(crossed)),
                                                  at_.CreateMul(above, factor_low));
        return at_.CreateAdd(at_.CreateAdd(at_.CreateMul(above, factor_high), high(crossed)), high(middle));
    }

    llvm::Value* of_unsigned(llvm::Value* numbers, unsigned leading_zeros) {
        const auto magic =
            llvm::UnsignedDivisionByConstantInfo::get(divisor_, std::min(leading_zeros, divisor_.countLeadingZeros()));
        llvm::Value* quotients = upper_product(at_.CreateLShr(numbers, all(magic.PreShift)), magic.Magic);
        if (magic.IsAdd)
            quotients = at_.CreateAdd(at_.CreateLShr(at_.CreateSub(numbers, quotients), all(1)), quotients);
        return at_.CreateLShr(quotients, all(magic.PostShift));
    }

    // The product with signs is that without, less `factor` for each negative number and less the number for a negative factor. The quotient needs the number
    // once more where divisor and factor have different signs.
    llvm::Value* of_signed(llvm::Value* numbers) {
        const auto magic = llvm::SignedDivisionByConstantInfo::get(divisor_);
        llvm::Value* const signs = at_.CreateAShr(numbers, all(element_bits - 1));
        llvm::Value* quotients =
            at_.CreateSub(upper_product(numbers, magic.Magic), at_.CreateAnd(signs, all(magic.Magic)));
        if (divisor_.isNegative())
            quotients = at_.CreateSub(quotients, numbers);
        quotients = at_.CreateAShr(quotients, all(magic.ShiftAmount));
        return at_.CreateAdd(quotients, at_.CreateLShr(quotients, all(element_bits - 1)));
    }

    llvm::IRBuilder<> at_;
    llvm::Type* const type_;
    const llvm::APInt& divisor_;
};

}  // namespace

void multiply_for_divisions(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86() || !machine.getMCSubtargetInfo()->checkFeatures("+avx2"))
        return;
    llvm::SmallVector<std::pair<llvm::Instruction*, const llvm::APInt*>> found;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (const llvm::APInt* const divisor = divisor_of(instruction))
            found.emplace_back(&instruction, divisor);
    for (const auto& [division, divisor] : found) {
        const llvm::KnownBits known = llvm::computeKnownBits(
            division->getOperand(0), llvm::SimplifyQuery(function.getParent()->getDataLayout(), division));
        llvm::IRBuilder<> at(division);
        llvm::Value* const numbers = at.CreateFreeze(division->getOperand(0));  // used more than once
        llvm::Value* const quotients =
            Quotient(*division, *divisor).of(numbers, is_signed_division(division->getOpcode()), known);
        division->replaceAllUsesWith(is_remainder(division->getOpcode())
                                         ? at.CreateSub(numbers, at.CreateMul(quotients, division->getOperand(1)))
                                         : quotients);
        division->eraseFromParent();
    }
}

}  // namespace polder::compiler
