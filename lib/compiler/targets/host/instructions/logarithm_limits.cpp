#include "logarithm_limits.h"

#include "register_parts.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Local.h>

namespace polder::compiler {
namespace {

using namespace llvm::PatternMatch;

constexpr RegisterIntrinsics fix_up{
    {llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_128, llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_256,
     llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_512},
    {llvm::Intrinsic::x86_avx512_mask_fixupimm_pd_128, llvm::Intrinsic::x86_avx512_mask_fixupimm_pd_256,
     llvm::Intrinsic::x86_avx512_mask_fixupimm_pd_512}};

// Four bits for each kind of x, from the lowest: quiet and signalling NaN (2: x, quiet), zero (4: -infinity), one (0: the result),
// -infinity (3: NaN), infinity (5: infinity), other negative (3) and positive numbers (0).
constexpr uint64_t limits_of_logarithm = 0x03530422;

struct Logarithm {
    llvm::Value *x = nullptr, *result = nullptr;  // of a positive finite x
};

bool compares(llvm::Value* condition, llvm::ArrayRef<llvm::CmpInst::Predicate> predicates, const llvm::Value* x,
              llvm::function_ref<bool(const llvm::APFloat&)> is_limit) {
    const auto* const comparison = llvm::dyn_cast<llvm::FCmpInst>(condition);
    const llvm::APFloat* limit = nullptr;
    return comparison && llvm::is_contained(predicates, comparison->getPredicate()) && comparison->getOperand(0) == x &&
           match(comparison->getOperand(1), m_APFloat(limit)) && is_limit(*limit);
}

// Nothing when the choice is another one.
Logarithm logarithm_of(llvm::Instruction& choice) {
    llvm::Value *is_zero = nullptr, *is_negative = nullptr, *is_finite = nullptr, *x = nullptr, *result = nullptr;
    const llvm::APFloat *at_zero = nullptr, *below_zero = nullptr;
    if (!match(&choice, m_Select(m_Value(is_zero), m_APFloat(at_zero),
                                 m_Select(m_Value(is_negative), m_APFloat(below_zero),
                                          m_Select(m_Value(is_finite), m_Value(result), m_Value(x))))))
        return {};
    const auto is_null = [](const llvm::APFloat& limit) { return limit.isZero(); };
    const auto is_infinite = [](const llvm::APFloat& limit) { return limit.isInfinity() && !limit.isNegative(); };
    const bool matches = at_zero->isInfinity() && at_zero->isNegative() && below_zero->isNaN() &&
                         compares(is_zero, {llvm::CmpInst::FCMP_OEQ}, x, is_null) &&
                         compares(is_negative, {llvm::CmpInst::FCMP_OLT}, x, is_null) &&
                         compares(is_finite, {llvm::CmpInst::FCMP_OLT, llvm::CmpInst::FCMP_ONE}, x, is_infinite);
    return matches ? Logarithm{x, result} : Logarithm{};
}

llvm::Value* chosen_by_instruction(llvm::IRBuilder<>& at, llvm::Value& result, llvm::Value& x) {
    auto* const type = llvm::cast<llvm::FixedVectorType>(x.getType());
    auto* const words = llvm::VectorType::getInteger(type);
    llvm::SmallVector<llvm::Value*> arguments{&result, &x, llvm::ConstantInt::get(words, limits_of_logarithm),
                                              at.getInt32(0), mask_of_all(at, *type)};
    if (type->getPrimitiveSizeInBits() == 512)
        arguments.push_back(at.getInt32(4));  // rounds in the current mode
    return at.CreateIntrinsic(intrinsic_for(*type, fix_up), arguments);
}

}  // namespace

void choose_limits_of_logarithms(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86() || !machine.getMCSubtargetInfo()->checkFeatures("+avx512f,+avx512vl"))
        return;
    llvm::SmallVector<llvm::Instruction*> replaced;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        const Logarithm found = fills_registers(*instruction.getType()) ? logarithm_of(instruction) : Logarithm{};
        if (found.x == nullptr)
            continue;
        llvm::IRBuilder<> at(&instruction);
        instruction.replaceAllUsesWith(in_registers(at, {found.result, found.x}, [&](auto operands) {
            return chosen_by_instruction(at, *operands[0], *operands[1]);
        }));
        replaced.push_back(&instruction);
    }
    for (llvm::Instruction* const instruction : replaced)
        llvm::RecursivelyDeleteTriviallyDeadInstructions(instruction);
}

}  // namespace polder::compiler
