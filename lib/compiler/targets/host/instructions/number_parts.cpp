// The integer exponent is a shift of bits, which are chosen between those of x and those of a subnormal x as a normal number. The sum that makes the latter has
// the flag `afn`: x is positive and finite, or the result has no effect.
#include "number_parts.h"

#include "register_parts.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Local.h>
#include <utility>

namespace polder::compiler {
namespace {

using namespace llvm::PatternMatch;

constexpr RegisterIntrinsics exponent{
    {llvm::Intrinsic::x86_avx512_mask_getexp_ps_128, llvm::Intrinsic::x86_avx512_mask_getexp_ps_256,
     llvm::Intrinsic::x86_avx512_mask_getexp_ps_512},
    {llvm::Intrinsic::x86_avx512_mask_getexp_pd_128, llvm::Intrinsic::x86_avx512_mask_getexp_pd_256,
     llvm::Intrinsic::x86_avx512_mask_getexp_pd_512}};
constexpr RegisterIntrinsics mantissa{
    {llvm::Intrinsic::x86_avx512_mask_getmant_ps_128, llvm::Intrinsic::x86_avx512_mask_getmant_ps_256,
     llvm::Intrinsic::x86_avx512_mask_getmant_ps_512},
    {llvm::Intrinsic::x86_avx512_mask_getmant_pd_128, llvm::Intrinsic::x86_avx512_mask_getmant_pd_256,
     llvm::Intrinsic::x86_avx512_mask_getmant_pd_512}};

// What remains of `sum` without so many exponents; null when they are not added there. Bits are added modulo a power of two.
llvm::Value* less_exponents(llvm::Value* sum, int64_t exponents, unsigned mantissa_bits) {
    const llvm::APInt* added = nullptr;
    llvm::Value* base = nullptr;
    if (!match(sum, m_Add(m_Value(base), m_APInt(added))))
        return nullptr;
    const llvm::APInt expected(added->getBitWidth(), static_cast<uint64_t>(exponents), true, true);
    return *added == expected.shl(mantissa_bits) ? base : nullptr;
}

// A subnormal x as a whole number: the difference of a power of two with its bits in the last places and that power.
bool is_raised(llvm::Value* bits, llvm::Value* x, unsigned mantissa_bits) {
    llvm::Instruction* sum = nullptr;
    const llvm::APFloat* less = nullptr;
    const llvm::APInt* place = nullptr;
    if (!match(bits, m_BitCast(m_CombineAnd(
                         m_Instruction(sum),
                         m_FAdd(m_BitCast(m_Or(m_BitCast(m_Specific(x)), m_APInt(place))), m_APFloat(less))))))
        return false;
    const llvm::APFloat power = llvm::scalbn(llvm::APFloat::getOne(less->getSemantics()),
                                             static_cast<int>(mantissa_bits), llvm::APFloat::rmNearestTiesToEven);
    return sum->hasApproxFunc() && -*less == power && *place == power.bitcastToAPInt();
}

// x, of its binary exponent as an integer; else null.
llvm::Value* number_of_exponent(llvm::Value* integer) {
    llvm::Value *condition = nullptr, *of_true = nullptr, *of_false = nullptr;
    const llvm::APInt* shift = nullptr;
    if (!match(integer, m_AShr(m_Select(m_Value(condition), m_Value(of_true), m_Value(of_false)), m_APInt(shift))))
        return nullptr;
    llvm::CmpPredicate predicate;
    llvm::Value* x = nullptr;
    const llvm::APFloat* limit = nullptr;
    if (!match(condition, m_FCmp(predicate, m_Value(x), m_APFloat(limit))))
        return nullptr;
    const llvm::fltSemantics& semantics = limit->getSemantics();
    const unsigned mantissa_bits = llvm::APFloat::semanticsPrecision(semantics) - 1;
    if (*limit != llvm::APFloat::getSmallestNormalized(semantics) || *shift != mantissa_bits)
        return nullptr;
    if (predicate == llvm::CmpInst::FCMP_UGE || predicate == llvm::CmpInst::FCMP_OGE)
        std::swap(of_true, of_false);
    else if (predicate != llvm::CmpInst::FCMP_OLT && predicate != llvm::CmpInst::FCMP_ULT)
        return nullptr;
    const int64_t bias = llvm::APFloat::semanticsMaxExponent(semantics);
    llvm::Value* const raised = less_exponents(of_true, 1 - 2 * bias - int64_t{mantissa_bits}, mantissa_bits);
    llvm::Value* const bits = less_exponents(of_false, -bias, mantissa_bits);
    const bool matches = raised != nullptr && bits != nullptr && is_raised(raised, x, mantissa_bits) &&
                         match(bits, m_BitCast(m_Specific(x)));
    return matches ? x : nullptr;
}

llvm::Value* exponent_of(llvm::IRBuilder<>& at, llvm::Value& x) {
    llvm::SmallVector<llvm::Value*> arguments{&x, llvm::PoisonValue::get(x.getType()), mask_of_all(at, *x.getType())};
    if (x.getType()->getPrimitiveSizeInBits() == 512)
        arguments.push_back(at.getInt32(4));  // rounds in the current mode
    return at.CreateIntrinsic(intrinsic_for(*x.getType(), exponent), arguments);
}

llvm::Value* mantissa_of(llvm::IRBuilder<>& at, llvm::Value& x) {
    llvm::Value* const from_one_with_sign = at.getInt32(0);
    llvm::SmallVector<llvm::Value*> arguments{&x, from_one_with_sign, llvm::PoisonValue::get(x.getType()),
                                              mask_of_all(at, *x.getType())};
    if (x.getType()->getPrimitiveSizeInBits() == 512)
        arguments.push_back(at.getInt32(4));
    return at.CreateIntrinsic(intrinsic_for(*x.getType(), mantissa), arguments);
}

// What replaces the instruction; null when it is neither an exponent nor a mantissa.
llvm::Value* by_instruction(llvm::Instruction& instruction) {
    llvm::Value *integer = nullptr, *scaled = nullptr;
    const bool is_exponent = match(&instruction, m_SIToFP(m_Value(integer)));
    const bool is_mantissa =
        !is_exponent &&
        match(&instruction,
              m_Intrinsic<llvm::Intrinsic::ldexp>(m_Value(scaled), m_Neg(m_TruncOrSelf(m_Value(integer))))) &&
        instruction.hasApproxFunc();
    llvm::Value* const x = is_exponent || is_mantissa ? number_of_exponent(integer) : nullptr;
    if (x == nullptr || x->getType() != instruction.getType() || (is_mantissa && x != scaled))
        return nullptr;
    llvm::IRBuilder<> at(&instruction);
    return in_registers(at, {x}, [&](auto operands) {
        return is_exponent ? exponent_of(at, *operands[0]) : mantissa_of(at, *operands[0]);
    });
}

}  // namespace

void split_numbers_by_instructions(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86() || !machine.getMCSubtargetInfo()->checkFeatures("+avx512f,+avx512vl"))
        return;
    llvm::SmallVector<llvm::Instruction*> replaced;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        llvm::Value* const made = fills_registers(*instruction.getType()) ? by_instruction(instruction) : nullptr;
        if (made == nullptr)
            continue;
        instruction.replaceAllUsesWith(made);
        replaced.push_back(&instruction);
    }
    for (llvm::Instruction* const instruction : replaced)
        llvm::RecursivelyDeleteTriviallyDeadInstructions(instruction);
}

}  // namespace polder::compiler
