// With N bits and a divisor d >= 1, let l be the least number with 2^l >= d, and m = floor(2^N * (2^l - d) / d) + 1, which fits N bits.
// Then n / d = (t + ((n - t) >> min(l, 1))) >> max(l - 1, 0), where t is the upper half of m * n. Signed operands are divided by
// their absolute values. Operands of fewer than 32 bits are extended.
#include "uniform_division.h"

#include "division_kinds.h"
#include "hoisting.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <map>

namespace polder::compiler::workgroup {

namespace {

// `instruction` as a division or remainder by a variable of at most 64 bits; null for any other instruction. Vectors of 64-bit numbers are not
// changed, because their reciprocals would need divisions of vectors of 128-bit numbers.
llvm::BinaryOperator* variable_division(llvm::Instruction& instruction) {
    auto* division = llvm::dyn_cast<llvm::BinaryOperator>(&instruction);
    if (!division || !division->isIntDivRem() || llvm::isa<llvm::Constant>(division->getOperand(1)))
        return nullptr;
    const unsigned bits = division->getType()->getScalarSizeInBits();
    return bits <= (division->getType()->isVectorTy() ? 32U : 64U) ? division : nullptr;
}

struct Reciprocal {
    llvm::Value* divisor;  // its absolute value, at least 1
    llvm::Value* multiplier;
    llvm::Value *first_shift, *second_shift;
};

// Writes the algorithm in IR, for N = 32 or 64 bits, or for vectors of 32-bit numbers. Reciprocals are in the prologue, one for each divisor.
class Reciprocals {
public:
    explicit Reciprocals(llvm::BasicBlock& prologue) : at_(prologue.getTerminator()) {}

    // The value that replaces `division`.
    llvm::Value* quotient_or_remainder(llvm::BinaryOperator& division) {
        const bool with_sign = is_signed_division(division.getOpcode());
        llvm::IRBuilder<> here(&division);
        llvm::Type* const narrow = division.getType();
        llvm::Type* const type = narrow->getWithNewBitWidth(narrow->getScalarSizeInBits() <= 32 ? 32 : 64);
        const auto extended = [&](llvm::IRBuilder<>& at, llvm::Value* value) {
            return at.CreateIntCast(value, type, with_sign);
        };
        const Reciprocal& by = of(*division.getOperand(1), with_sign, extended);
        llvm::Value* const dividend = extended(here, division.getOperand(0));
        llvm::Value* const size = with_sign ? absolute(here, dividend) : dividend;
        llvm::Value* result = quotient(here, size, by);
        if (is_remainder(division.getOpcode()))
            result = here.CreateSub(size, here.CreateMul(result, by.divisor));
        if (with_sign) {
            // The remainder has the dividend's sign, the quotient is negative when one of the operands is.
            llvm::Value* const negative = is_remainder(division.getOpcode())
                                              ? dividend
                                              : here.CreateXor(dividend, extended(at_, division.getOperand(1)));
            llvm::Value* const sign = marked(here.CreateAShr(negative, bits_of(type) - 1));
            result = here.CreateSub(here.CreateXor(result, sign), sign);
        }
        return here.CreateTrunc(result, narrow);
    }

private:
    static llvm::Value* marked(llvm::Value* value) {
        if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(value))
            instruction->setMetadata(neighbours_quotient, llvm::MDNode::get(value->getContext(), {}));
        return value;
    }

    static unsigned bits_of(const llvm::Type* type) { return type->getScalarSizeInBits(); }

    static llvm::Value* absolute(llvm::IRBuilder<>& at, llvm::Value* value) {
        return at.CreateBinaryIntrinsic(llvm::Intrinsic::abs, value, at.getFalse());
    }

    template <class Extend>
    const Reciprocal& of(llvm::Value& divisor, bool with_sign, const Extend& extended) {
        const auto [found, is_new] = made_.try_emplace({&divisor, with_sign});
        if (is_new) {
            llvm::Value* value = extended(at_, at_.CreateFreeze(&divisor));
            if (with_sign)
                value = absolute(at_, value);
            found->second = make(value);
        }
        return found->second;
    }

    Reciprocal make(llvm::Value* divisor) {
        llvm::Type* const type = divisor->getType();
        const unsigned bits = bits_of(type);
        llvm::Type* const wide = type->getWithNewBitWidth(2 * bits);
        const auto number = [&](uint64_t value) { return llvm::ConstantInt::get(type, value); };
        divisor = at_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, divisor, number(1));
        llvm::Value* const zeros =
            at_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, at_.CreateSub(divisor, number(1)), at_.getFalse());
        llvm::Value* const log = at_.CreateSub(number(bits), zeros);
        llvm::Value* const wide_divisor = at_.CreateZExt(divisor, wide);
        llvm::Value* const power = at_.CreateShl(llvm::ConstantInt::get(wide, 1), at_.CreateZExt(log, wide));
        llvm::Value* const dividend = at_.CreateShl(at_.CreateSub(power, wide_divisor), bits);
        llvm::Value* const multiplier =
            at_.CreateAdd(at_.CreateTrunc(at_.CreateUDiv(dividend, wide_divisor), type), number(1));
        llvm::Value* const first = at_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, log, number(1));
        return {divisor, multiplier, first, at_.CreateSub(log, first)};
    }

    static llvm::Value* quotient(llvm::IRBuilder<>& at, llvm::Value* dividend, const Reciprocal& by) {
        llvm::Value* const high = upper_half(at, dividend, by.multiplier);
        llvm::Value* const rest = at.CreateLShr(at.CreateSub(dividend, high), by.first_shift);
        return marked(at.CreateLShr(at.CreateAdd(high, rest), by.second_shift));
    }

    // The upper half of a product. For 64-bit numbers it is made of 32-bit products, which all processors have for vectors.
    static llvm::Value* upper_half(llvm::IRBuilder<>& at, llvm::Value* left, llvm::Value* right) {
        llvm::Type* const type = left->getType();
        if (bits_of(type) == 32) {
            llvm::Type* const wide = type->getWithNewBitWidth(64);
            llvm::Value* const product = at.CreateMul(at.CreateZExt(left, wide), at.CreateZExt(right, wide));
            return at.CreateTrunc(at.CreateLShr(product, 32), type);
        }
        const auto low = [&](llvm::Value* value) { return at.CreateAnd(value, UINT32_MAX); };
        const auto high = [&](llvm::Value* value) { return at.CreateLShr(value, 32); };
        llvm::Value *const a = low(left), *const b = high(left), *const c = low(right), *const d = high(right);
        llvm::Value* const middle = at.CreateAdd(at.CreateMul(b, c), high(at.CreateMul(a, c)));
        llvm::Value* const other = at.CreateAdd(at.CreateMul(a, d), low(middle));
        return at.CreateAdd(at.CreateAdd(at.CreateMul(b, d), high(middle)), high(other));
    }

    llvm::IRBuilder<> at_;  // the end of the prologue
    std::map<std::pair<llvm::Value*, bool>, Reciprocal> made_;  // by divisor and whether it has a sign
};

}  // namespace

bool has_variable_divisions(llvm::Function& function) {
    return llvm::any_of(llvm::instructions(function),
                        [](llvm::Instruction& instruction) { return variable_division(instruction) != nullptr; });
}

void divide_by_reciprocals(llvm::Function& function, llvm::BasicBlock& prologue, const Uniformity& uniformity) {
    hoist_uniform_values(function, prologue, uniformity);
    llvm::SmallVector<llvm::BinaryOperator*> divisions;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        llvm::BinaryOperator* const division = variable_division(instruction);
        if (!division || uniformity.is_uniform(division))
            continue;
        const auto* divisor = llvm::dyn_cast<llvm::Instruction>(division->getOperand(1));
        if (!divisor || divisor->getParent() == &prologue)
            divisions.push_back(division);
    }
    Reciprocals reciprocals(prologue);
    for (llvm::BinaryOperator* division : divisions) {
        llvm::Value* const result = reciprocals.quotient_or_remainder(*division);
        division->replaceAllUsesWith(result);
        division->eraseFromParent();
    }
}

}  // namespace polder::compiler::workgroup
