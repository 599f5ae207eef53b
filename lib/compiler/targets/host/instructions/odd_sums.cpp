// Found from the choice at the end. An exact sum is the same in both directions. Of two floats that are neighbours, the last bit of one is set; an exact zero has
// the sign that rounding up gives, as rounding to the nearest does.
#include "odd_sums.h"

#include "register_parts.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Local.h>

namespace polder::compiler {
namespace {

using namespace llvm::PatternMatch;

// a b + c
struct FusedSum {
    llvm::Value *a = nullptr, *b = nullptr, *c = nullptr;
};

bool is_fused(llvm::Value* value, FusedSum& sum) {
    return match(value, m_Intrinsic<llvm::Intrinsic::fmuladd>(m_Value(sum.a), m_Value(sum.b), m_Value(sum.c))) ||
           match(value, m_Intrinsic<llvm::Intrinsic::fma>(m_Value(sum.a), m_Value(sum.b), m_Value(sum.c)));
}

// Whether `error` is what `nearest`, the sum rounded to the nearest float, lacks: (a b - part) + (c - (nearest - part)) for part = nearest - c.
bool is_error(llvm::Value* error, llvm::Value* nearest, const FusedSum& sum) {
    llvm::Value *of_product = nullptr, *part = nullptr;
    FusedSum again;
    const auto of_addend = m_FSub(m_Specific(sum.c), m_FSub(m_Specific(nearest), m_Value(part)));
    return match(error, m_c_FAdd(m_Value(of_product), of_addend)) && is_fused(of_product, again) && again.a == sum.a &&
           again.b == sum.b && match(again.c, m_FNeg(m_Specific(part))) &&
           match(part, m_FSub(m_Specific(nearest), m_Specific(sum.c)));
}

bool was_half(llvm::Value* value) {
    llvm::Value* half = nullptr;
    return match(value, m_FPExt(m_Value(half))) && half->getType()->getScalarType()->isHalfTy();
}

// The sum that the choice rounds to odd. Of halves: their product is exact and does not overflow.
bool is_rounded_to_odd(llvm::Instruction& choice, FusedSum& sum) {
    llvm::Value *error = nullptr, *step = nullptr, *nearest = nullptr, *sign = nullptr;
    if (!match(&choice, m_Select(m_SpecificFCmp(llvm::CmpInst::FCMP_ONE, m_Value(error), m_AnyZeroFP()),
                                 m_BitCast(m_c_Or(m_Value(step), m_One())), m_Value(nearest))) ||
        !is_fused(nearest, sum) || !was_half(sum.a) || !was_half(sum.b) || !was_half(sum.c) ||
        !is_error(error, nearest, sum))
        return false;
    // One less where the error's sign is another.
    const auto bits = m_BitCast(m_Specific(nearest));
    return match(step, m_c_Add(bits, m_AShr(m_Value(sign), m_SpecificInt(31)))) &&
           match(sign, m_c_Xor(bits, m_BitCast(m_Specific(error))));
}

llvm::Value* rounded_to_odd(llvm::IRBuilder<>& at, llvm::ArrayRef<llvm::Value*> operands) {
    constexpr uint32_t down = 1, up = 2, without_exceptions = 8;
    const auto rounded = [&](uint32_t direction) {
        return at.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vfmadd_ps_512, {},
                                  {operands[0], operands[1], operands[2], at.getInt32(direction | without_exceptions)});
    };
    llvm::Value *const below = rounded(down), *const above = rounded(up);
    llvm::Type* const words = below->getType()->getWithNewType(at.getInt32Ty());
    llvm::Value* const last_bit = at.CreateAnd(at.CreateBitCast(below, words), llvm::ConstantInt::get(words, 1));
    return at.CreateSelect(at.CreateICmpNE(last_bit, llvm::Constant::getNullValue(words)), below, above);
}

}  // namespace

void round_sums_to_odd(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86() || !machine.getMCSubtargetInfo()->checkFeatures("+avx512f"))
        return;
    constexpr uint64_t register_bits = 512;
    llvm::SmallVector<llvm::Instruction*> replaced;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        FusedSum sum;
        if (!instruction.getType()->getScalarType()->isFloatTy() || !fills_registers(*instruction.getType()) ||
            instruction.getType()->getPrimitiveSizeInBits().getFixedValue() < register_bits ||
            !is_rounded_to_odd(instruction, sum))
            continue;
        llvm::IRBuilder<> at(&instruction);
        instruction.replaceAllUsesWith(in_registers(
            at, {sum.a, sum.b, sum.c}, [&](llvm::ArrayRef<llvm::Value*> parts) { return rounded_to_odd(at, parts); }));
        replaced.push_back(&instruction);
    }
    for (llvm::Instruction* const instruction : replaced)
        llvm::RecursivelyDeleteTriviallyDeadInstructions(instruction);
}

}  // namespace polder::compiler
