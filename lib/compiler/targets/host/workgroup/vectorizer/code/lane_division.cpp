// A quotient in floating point is rounded, but never up to the next whole number k: the true quotient is at most k - 1/d, which is smaller by
// a part of 1/(k d), and k d is at most the number plus 1. So numbers of 32 bits have exact quotients in doubles, of 16 bits in floats.
//
// Where all lanes have one divisor, its reciprocal is a factor. Half of 1 is added to the numbers, so that no quotient is nearer to a whole
// number than rounding moves it. Unsigned numbers of 32 bits are rounded to the nearest whole number instead of down: (d - 1) / 2, the middle of
// the remainders, is subtracted first, so that each quotient is by 1/(2 d) less than a half away from its whole number. Rounding is the addition
// of a number so large that the last bit of the sum is worth 1; the sum's low bits are the whole number.
#include "lane_division.h"

#include "targets/host/workgroup/work_items/division_kinds.h"

namespace polder::compiler::workgroup {

namespace {

class Quotients {
public:
    Quotients(llvm::IRBuilder<>& builder, const LaneDivision& division)
        : builder_(builder), division_(division), type_(llvm::cast<llvm::FixedVectorType>(division.numbers->getType())),
          is_signed_(is_signed_division(division.opcode)),
          converts_signed_(is_signed_ || division.are_positive || type_->getScalarSizeInBits() < word_bits) {}

    // `numbers`: as the division's.
    llvm::Value* of(llvm::Value* numbers) {
        llvm::Value* const dividends = as_real(numbers);
        if (division_.divisor == nullptr)
            return whole(builder_.CreateFDiv(dividends, as_real(division_.divisors)));
        llvm::Value* const divisor = as_real(division_.divisor);
        llvm::Value* const one = llvm::ConstantFP::get(real_element(), 1);
        llvm::Value* const reciprocals = splat(builder_.CreateFDiv(one, divisor));
        llvm::Constant* const halves = llvm::ConstantFP::get(dividends->getType(), half);
        if (!converts_signed_) {
            llvm::Value* const middle =
                builder_.CreateFMul(builder_.CreateFSub(divisor, one), llvm::ConstantFP::get(real_element(), half));
            return nearest(builder_.CreateFMul(builder_.CreateFSub(dividends, splat(middle)), reciprocals));
        }
        llvm::Value* const towards =
            is_signed_ ? builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, halves, dividends) : halves;
        return whole(builder_.CreateFMul(builder_.CreateFAdd(dividends, towards), reciprocals));
    }

private:
    static constexpr unsigned float_bits = 16, word_bits = 32;
    static constexpr double half = 0.5;

    // The whole numbers below `quotients`.
    llvm::Value* whole(llvm::Value* quotients) {
        llvm::Type* const words = type_->getWithNewBitWidth(word_bits);
        quotients =
            converts_signed_ ? builder_.CreateFPToSI(quotients, words) : builder_.CreateFPToUI(quotients, words);
        return builder_.CreateTrunc(quotients, type_);
    }

    // The whole numbers next to `quotients`. A conversion of doubles to unsigned numbers takes eight instructions on processors without AVX-512.
    llvm::Value* nearest(llvm::Value* quotients) {
        constexpr double last_bit_is_1 = 0x1.8p52;
        llvm::Value* const sums =
            builder_.CreateFAdd(quotients, llvm::ConstantFP::get(quotients->getType(), last_bit_is_1));
        return builder_.CreateTrunc(builder_.CreateBitCast(sums, type_->getWithNewBitWidth(2 * word_bits)), type_);
    }

    llvm::Value* splat(llvm::Value* scalar) { return builder_.CreateVectorSplat(type_->getElementCount(), scalar); }

    llvm::Type* real_element() {
        return type_->getScalarSizeInBits() <= float_bits ? builder_.getFloatTy() : builder_.getDoubleTy();
    }

    // Conversions of signed numbers are single instructions, on most processors only those of 32 bits.
    llvm::Value* as_real(llvm::Value* value) {
        llvm::Type* const words = value->getType()->getWithNewBitWidth(word_bits);
        llvm::Type* const real = value->getType()->getWithNewType(real_element());
        llvm::Value* const word = is_signed_ ? builder_.CreateSExt(value, words) : builder_.CreateZExt(value, words);
        return converts_signed_ ? builder_.CreateSIToFP(word, real) : builder_.CreateUIToFP(word, real);
    }

    llvm::IRBuilder<>& builder_;
    const LaneDivision& division_;
    llvm::FixedVectorType* const type_;
    const bool is_signed_, converts_signed_;
};

}  // namespace

llvm::Value* divide_lanes(llvm::IRBuilder<>& builder, const LaneDivision& division) {
    const bool wants_rest = is_remainder(division.opcode);
    // A remainder uses them twice.
    llvm::Value* const numbers = wants_rest ? builder.CreateFreeze(division.numbers) : division.numbers;
    llvm::Value* const quotients = Quotients(builder, division).of(numbers);
    if (!wants_rest)
        return quotients;
    return builder.CreateSub(numbers, builder.CreateMul(quotients, division.divisors));
}

}  // namespace polder::compiler::workgroup
