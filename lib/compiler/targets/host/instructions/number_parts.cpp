// logb is the same instruction without any choice: it gives -infinity for 0, and infinities and NaN as |x|.
//
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

// The arms of a choice by whether x, or |x|, is a limit or below it; nothing when the choice is another one.
struct Arms {
    llvm::Value *when_true = nullptr, *when_false = nullptr;
};

llvm::Value* without_sign(llvm::Value* x) {
    llvm::Value* signed_x = x;
    match(x, m_FAbs(m_Value(signed_x)));
    return signed_x;
}

Arms arms_of(llvm::Value* choice, const llvm::Value* x, llvm::ArrayRef<llvm::CmpInst::Predicate> predicates,
             const llvm::APFloat& limit) {
    llvm::Value *condition = nullptr, *compared = nullptr;
    Arms arms;
    llvm::CmpPredicate predicate;
    const llvm::APFloat* number = nullptr;
    if (!match(choice, m_Select(m_Value(condition), m_Value(arms.when_true), m_Value(arms.when_false))) ||
        !match(condition, m_FCmp(predicate, m_Value(compared), m_APFloat(number))) || without_sign(compared) != x ||
        !number->bitwiseIsEqual(limit))
        return {};
    if (llvm::is_contained(predicates, llvm::CmpInst::getInversePredicate(predicate)))
        std::swap(arms.when_true, arms.when_false);
    else if (!llvm::is_contained(predicates, static_cast<llvm::CmpInst::Predicate>(predicate)))
        return {};
    return arms;
}

// x, when the choice is logb(x): -infinity for 0, the exponent of |x| for finite ones, else |x|.
llvm::Value* number_of_logb(llvm::Instruction& choice) {
    llvm::Value *zero_condition = nullptr, *zero_compared = nullptr;
    if (!match(&choice, m_Select(m_Value(zero_condition), m_Value(), m_Value())) ||
        !match(zero_condition, m_FCmp(m_Value(zero_compared), m_AnyZeroFP())))
        return nullptr;
    llvm::Value* const x = without_sign(zero_compared);
    const llvm::fltSemantics& semantics = x->getType()->getScalarType()->getFltSemantics();
    const Arms zero = arms_of(&choice, x, {llvm::CmpInst::FCMP_OEQ}, llvm::APFloat::getZero(semantics));
    const llvm::APFloat* at_zero = nullptr;
    if (zero.when_true == nullptr || !match(zero.when_true, m_APFloat(at_zero)) || !at_zero->isInfinity() ||
        !at_zero->isNegative())
        return nullptr;
    const Arms finite = arms_of(zero.when_false, x, {llvm::CmpInst::FCMP_OLT, llvm::CmpInst::FCMP_ONE},
                                llvm::APFloat::getInf(semantics));
    llvm::Value* integer = nullptr;
    if (finite.when_true == nullptr || !match(finite.when_false, m_FAbs(m_Specific(x))) ||
        !match(finite.when_true, m_SIToFP(m_Value(integer))))
        return nullptr;
    llvm::Value* const size = number_of_exponent(integer);
    return size != nullptr && size != x && without_sign(size) == x ? x : nullptr;
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

// What replaces the instruction; null when it is not logb.
llvm::Value* logb_by_instruction(llvm::Instruction& instruction) {
    llvm::Value* const x = number_of_logb(instruction);
    if (x == nullptr)
        return nullptr;
    llvm::IRBuilder<> at(&instruction);
    return in_registers(at, {x}, [&](auto operands) { return exponent_of(at, *operands[0]); });
}

// The same for what is neither an exponent nor a mantissa.
llvm::Value* part_by_instruction(llvm::Instruction& instruction) {
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
    // logb first, because its exponent is one of those.
    for (const auto replacement : {logb_by_instruction, part_by_instruction}) {
        llvm::SmallVector<llvm::Instruction*> replaced;
        for (llvm::Instruction& instruction : llvm::instructions(function)) {
            llvm::Value* const made = fills_registers(*instruction.getType()) ? replacement(instruction) : nullptr;
            if (made == nullptr)
                continue;
            instruction.replaceAllUsesWith(made);
            replaced.push_back(&instruction);
        }
        for (llvm::Instruction* const instruction : replaced)
            llvm::RecursivelyDeleteTriviallyDeadInstructions(instruction);
    }
}

}  // namespace polder::compiler
