#include "class_ranges.h"

#include <llvm/ADT/FloatingPointMode.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#include <optional>

namespace polder::compiler {
namespace {

using llvm::APInt;

// The bits of sizes of numbers, from the first one to that before the second.
struct SizeRange {
    APInt from, to;
};

// The classes of both signs, in the order of their bits, and the first bits of each.
struct ClassBounds {
    explicit ClassBounds(const llvm::fltSemantics& kind) {
        const auto bits_of = [](const llvm::APFloat& number) { return number.bitcastToAPInt(); };
        const APInt infinite = bits_of(llvm::APFloat::getInf(kind));
        const APInt quiet = bits_of(llvm::APFloat::getQNaN(kind));
        first[0] = APInt::getZero(infinite.getBitWidth());
        first[1] = first[0] + 1;
        first[2] = bits_of(llvm::APFloat::getSmallestNormalized(kind));
        first[3] = infinite;
        first[4] = infinite + 1;
        first[5] = quiet;
        first[6] = APInt::getSignMask(infinite.getBitWidth());
    }

    static constexpr unsigned count = 6;
    static constexpr llvm::FPClassTest classes[count] = {llvm::fcZero, llvm::fcSubnormal, llvm::fcNormal,
                                                         llvm::fcInf,  llvm::fcSNan,      llvm::fcQNan};
    APInt first[count + 1];
};

// Nothing unless the classes are neighbours, and each is asked for with both signs.
std::optional<SizeRange> sizes_of(llvm::FPClassTest asked, const llvm::fltSemantics& kind) {
    const ClassBounds bounds(kind);
    std::optional<SizeRange> range;
    for (unsigned i = 0; i < ClassBounds::count; ++i) {
        const llvm::FPClassTest common = asked & ClassBounds::classes[i];
        if (common == llvm::fcNone)
            continue;
        if (common != ClassBounds::classes[i] || (range && range->to != bounds.first[i]))
            return std::nullopt;
        range = SizeRange{range ? range->from : bounds.first[i], bounds.first[i + 1]};
    }
    return range;
}

llvm::Value* class_comparison(llvm::IntrinsicInst& question, const SizeRange& range, bool is_inside) {
    llvm::IRBuilder<> at(&question);
    llvm::Value* const number = question.getArgOperand(0);
    auto* const words = llvm::VectorType::getInteger(llvm::cast<llvm::VectorType>(number->getType()));
    const auto constant = [&](const APInt& value) { return llvm::ConstantInt::get(words, value); };
    llvm::Value* bits = at.CreateBitCast(number, words);
    bits = at.CreateAnd(bits, constant(APInt::getSignedMaxValue(words->getScalarSizeInBits())));
    if (!range.from.isZero())
        bits = at.CreateSub(bits, constant(range.from));
    llvm::Constant* const size = constant(range.to - range.from);
    return is_inside ? at.CreateICmpULT(bits, size) : at.CreateICmpUGE(bits, size);
}

bool has_class_instruction(const llvm::Type& type, const llvm::TargetMachine& machine) {
    const bool is_power = llvm::isPowerOf2_32(llvm::cast<llvm::FixedVectorType>(type).getNumElements());
    return machine.getTargetTriple().isX86() && is_power &&
           (type.getScalarType()->isFloatTy() || type.getScalarType()->isDoubleTy()) &&
           machine.getMCSubtargetInfo()->checkFeatures("+avx512dq,+avx512vl");
}

}  // namespace

void compare_classes(llvm::Function& function, const llvm::TargetMachine& machine) {
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
        auto* const question = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        if (question == nullptr || question->getIntrinsicID() != llvm::Intrinsic::is_fpclass ||
            !llvm::isa<llvm::FixedVectorType>(question->getType()))
            continue;
        llvm::Type& type = *question->getArgOperand(0)->getType();
        if (!type.getScalarType()->isIEEELikeFPTy() || has_class_instruction(type, machine))
            continue;
        const auto asked =
            static_cast<llvm::FPClassTest>(llvm::cast<llvm::ConstantInt>(question->getArgOperand(1))->getZExtValue());
        const llvm::fltSemantics& kind = type.getScalarType()->getFltSemantics();
        const auto inside = sizes_of(asked, kind);
        const auto outside = inside ? std::nullopt : sizes_of(~asked & llvm::fcAllFlags, kind);
        if (!inside && !outside)
            continue;
        question->replaceAllUsesWith(class_comparison(*question, inside ? *inside : *outside, inside.has_value()));
        question->eraseFromParent();
    }
}

}  // namespace polder::compiler
