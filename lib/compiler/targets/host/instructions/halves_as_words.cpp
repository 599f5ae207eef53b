// A half has 1 sign, 5 bits of exponent and 10 of mantissa. As a float's, these are 13 bits higher, and the exponent counts from 127 instead of 15. All
// results are those of the processor's instructions (vcvtph2ps, vcvtps2ph), NaNs apart, which keep their upper bits.
#include "halves_as_words.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>

namespace polder::compiler {
namespace {

class HalvesInWords {
public:
    explicit HalvesInWords(llvm::Instruction& before) : at_(&before) {}

    llvm::Value* to_float(llvm::Value& half) {
        floats_ = half.getType()->getWithNewType(at_.getFloatTy());
        words_ = half.getType()->getWithNewType(at_.getInt32Ty());
        llvm::Value* const bits =
            at_.CreateZExt(at_.CreateBitCast(&half, half.getType()->getWithNewType(at_.getInt16Ty())), words_);
        llvm::Value* const sign = at_.CreateShl(at_.CreateAnd(bits, word(half_sign)), word(float_sign_places));
        llvm::Value* const moved = at_.CreateShl(at_.CreateAnd(bits, word(half_size)), word(places));
        llvm::Value* const own_exponent = at_.CreateAnd(bits, word(half_exponent));
        // Infinities and NaNs have the largest exponent in both.
        llvm::Value* const more =
            at_.CreateSelect(at_.CreateICmpEQ(own_exponent, word(half_exponent)), word(2 * bias), word(bias));
        llvm::Value* const normal = at_.CreateAdd(moved, more);
        // 2^-14 and the subnormal part, less 2^-14.
        llvm::Value* const sum = at_.CreateBitCast(at_.CreateAdd(moved, word(least_normal)), floats_);
        llvm::Value* const least = at_.CreateBitCast(word(least_normal), floats_);
        llvm::Value* const subnormal = at_.CreateBitCast(at_.CreateFSub(sum, least), words_);
        llvm::Value* const size = at_.CreateSelect(at_.CreateICmpEQ(own_exponent, word(0)), subnormal, normal);
        return at_.CreateBitCast(at_.CreateOr(size, sign), floats_);
    }

    // Rounded to the nearest one, ties to even.
    llvm::Value* from_float(llvm::Value& number) {
        floats_ = number.getType();
        words_ = floats_->getWithNewType(at_.getInt32Ty());
        llvm::Value* const bits = at_.CreateBitCast(&number, words_);
        llvm::Value* const size = at_.CreateAnd(bits, word(float_size));
        llvm::Value* const sign = at_.CreateAnd(at_.CreateLShr(bits, word(float_sign_places)), word(half_sign));
        llvm::Value* const cut = at_.CreateLShr(size, word(places));
        // Half of the last place, or less by one place of the float where the half is even. A carry goes into the exponent.
        llvm::Value* const last_bit = at_.CreateAnd(cut, word(1));
        const uint64_t almost_half = (uint64_t{1} << (places - 1)) - 1;
        llvm::Value* const rounded = at_.CreateAdd(at_.CreateAdd(size, last_bit), word(almost_half - bias));
        llvm::Value* const normal = at_.CreateLShr(rounded, word(places));
        // The last place of a sum with 1/2 is 2^-24, that of subnormal halves.
        llvm::Value* const a_half = llvm::ConstantFP::get(floats_, 0.5);
        llvm::Value* const sum = at_.CreateFAdd(at_.CreateBitCast(size, floats_), a_half);
        llvm::Value* const subnormal = at_.CreateSub(at_.CreateBitCast(sum, words_), at_.CreateBitCast(a_half, words_));
        llvm::Value* const payload = at_.CreateAnd(cut, word(half_payload));
        llvm::Value* const large =
            at_.CreateSelect(at_.CreateICmpSGT(size, word(float_infinity)),
                             at_.CreateOr(payload, word(half_not_a_number)), word(half_exponent));
        llvm::Value* result = at_.CreateSelect(at_.CreateICmpSLT(size, word(least_normal)), subnormal, normal);
        result = at_.CreateSelect(at_.CreateICmpSLT(size, word(infinite)), result, large);
        result = at_.CreateTrunc(at_.CreateOr(result, sign), words_->getWithNewType(at_.getInt16Ty()));
        return at_.CreateBitCast(result, words_->getWithNewType(at_.getHalfTy()));
    }

    // By a float that is rounded to odd: its last bit is set if any bit is lost, so that the second rounding knows on which side the number is.
    llvm::Value* from_double(llvm::Value& number) {
        constexpr uint64_t lost = 0x1fffffff;
        llvm::Type* const type = number.getType();
        llvm::Type* const longs = type->getWithNewType(at_.getInt64Ty());
        const auto constant = [&](uint64_t value) { return llvm::ConstantInt::get(longs, value); };
        llvm::Value* const bits = at_.CreateBitCast(&number, longs);
        llvm::Value* const carry = at_.CreateAdd(at_.CreateAnd(bits, constant(lost)), constant(lost));
        llvm::Value* const odd = at_.CreateAnd(at_.CreateOr(bits, carry), constant(~lost));
        return from_float(*at_.CreateFPTrunc(at_.CreateBitCast(odd, type), type->getWithNewType(at_.getFloatTy())));
    }

    // What replaces the instruction; null where it stays.
    llvm::Value* replacement(llvm::Instruction& instruction) {
        if (instruction.getNumOperands() == 0)
            return nullptr;
        llvm::Value* const operand = instruction.getOperand(0);
        switch (instruction.getOpcode()) {
        case llvm::Instruction::FPExt:
            return is_half(*operand) ? at_.CreateFPExt(to_float(*operand), instruction.getType()) : nullptr;
        case llvm::Instruction::FPTrunc:
            if (!is_half(instruction))
                return nullptr;
            if (operand->getType()->getScalarType()->isFloatTy())
                return from_float(*operand);
            return operand->getType()->getScalarType()->isDoubleTy() ? from_double(*operand) : nullptr;
        case llvm::Instruction::FAdd:
        case llvm::Instruction::FSub:
        case llvm::Instruction::FMul:
        case llvm::Instruction::FDiv:
            // A float has more than twice the bits of a half, so that rounding twice is rounding once.
            return is_half(instruction) ? from_float(*of_floats(instruction)) : nullptr;
        case llvm::Instruction::FCmp: return is_half(*operand) ? of_floats(instruction) : nullptr;
        default: return nullptr;
        }
    }

private:
    static constexpr unsigned places = 13;  // between the mantissas
    static constexpr uint64_t half_sign = 0x8000, half_size = 0x7fff, half_exponent = 0x7c00,
                              half_not_a_number = 0x7e00, half_payload = 0x1ff;
    static constexpr uint64_t float_size = 0x7fffffff, float_infinity = 0x7f800000, float_sign_places = 16;
    static constexpr uint64_t bias = uint64_t{127 - 15} << 23;
    static constexpr uint64_t least_normal = bias + (uint64_t{1} << 23);  // 2^-14, as a float
    static constexpr uint64_t infinite = uint64_t{127 + 16} << 23;  // 2^16

    static bool is_half(const llvm::Value& value) { return value.getType()->getScalarType()->isHalfTy(); }

    llvm::Constant* word(uint64_t value) const { return llvm::ConstantInt::get(words_, static_cast<uint32_t>(value)); }

    // The same operation on the operands as floats.
    llvm::Value* of_floats(llvm::Instruction& operation) {
        llvm::Value* const left = to_float(*operation.getOperand(0));
        llvm::Value* const right = to_float(*operation.getOperand(1));
        if (const auto* comparison = llvm::dyn_cast<llvm::FCmpInst>(&operation))
            return at_.CreateFCmp(comparison->getPredicate(), left, right);
        return at_.CreateBinOp(llvm::cast<llvm::BinaryOperator>(operation).getOpcode(), left, right);
    }

    llvm::IRBuilder<> at_;
    llvm::Type *floats_ = nullptr, *words_ = nullptr;
};

}  // namespace

void convert_halves_as_words(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86() || machine.getMCSubtargetInfo()->checkFeatures("+f16c"))
        return;
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
        llvm::Value* const replacement = HalvesInWords(instruction).replacement(instruction);
        if (replacement == nullptr)
            continue;
        instruction.replaceAllUsesWith(replacement);
        instruction.eraseFromParent();
    }
}

}  // namespace polder::compiler
