// polder-retarget-builtins marks such calls of llvm.ldexp with the flag `afn`: where e is a NaN, x is one, too.
#include "power_scaling.h"

#include "machine/zen.h"
#include "register_parts.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>

namespace polder::compiler {
namespace {

constexpr RegisterIntrinsics scale{
    {llvm::Intrinsic::x86_avx512_mask_scalef_ps_128, llvm::Intrinsic::x86_avx512_mask_scalef_ps_256,
     llvm::Intrinsic::x86_avx512_mask_scalef_ps_512},
    {llvm::Intrinsic::x86_avx512_mask_scalef_pd_128, llvm::Intrinsic::x86_avx512_mask_scalef_pd_256,
     llvm::Intrinsic::x86_avx512_mask_scalef_pd_512}};

// e, of polder_scale(x, e); else null.
llvm::Value* exponent_of(const llvm::IntrinsicInst& call) {
    using namespace llvm::PatternMatch;
    llvm::Value* exponent = nullptr;
    const bool is_scale =
        call.getIntrinsicID() == llvm::Intrinsic::ldexp && call.hasApproxFunc() &&
        match(call.getArgOperand(1),
              m_Intrinsic<llvm::Intrinsic::fptosi_sat>(m_Intrinsic<llvm::Intrinsic::floor>(m_Value(exponent))));
    return is_scale && exponent->getType() == call.getType() ? exponent : nullptr;
}

// From this exponent on, x 2^e may be more than 0 for x < 2.
llvm::Constant* least_exponent(llvm::Type* type) {
    constexpr double of_floats = -150, of_doubles = -1075;
    return llvm::ConstantFP::get(type, type->getScalarType()->isDoubleTy() ? of_doubles : of_floats);
}

// Whether the only use is a choice between the result and 0.
bool is_chosen_beside_zero(const llvm::Instruction& call) {
    return call.hasOneUse() &&
           match(call.user_back(), llvm::PatternMatch::m_c_Select(llvm::PatternMatch::m_AnyZeroFP(),
                                                                  llvm::PatternMatch::m_Specific(&call)));
}

llvm::Value* scaled(llvm::IRBuilder<>& at, llvm::Value& x, llvm::Value& exponent) {
    llvm::Type* const type = x.getType();
    llvm::SmallVector<llvm::Value*> arguments{&x, &exponent, llvm::PoisonValue::get(type), mask_of_all(at, *type)};
    if (type->getPrimitiveSizeInBits() == 512)
        arguments.push_back(at.getInt32(4));  // rounds in the current mode
    return at.CreateIntrinsic(intrinsic_for(*type, scale), arguments);
}

// Code generation makes a mask of the comparison.
llvm::Value* zero_below_least(llvm::IRBuilder<>& at, llvm::Value& result, llvm::Value& exponent) {
    llvm::Value* const is_result = at.CreateFCmpUGE(&exponent, least_exponent(exponent.getType()));
    return at.CreateSelect(is_result, &result, llvm::Constant::getNullValue(result.getType()));
}

}  // namespace

void scale_by_instructions(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86() || !machine.getMCSubtargetInfo()->checkFeatures("+avx512f,+avx512vl"))
        return;
    const bool masks_zeros = !is_zen(machine);
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
        auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        llvm::Value* const exponent = call && fills_registers(*call->getType()) ? exponent_of(*call) : nullptr;
        if (exponent == nullptr)
            continue;
        llvm::IRBuilder<> at(call);
        const bool masks_zero = masks_zeros && !is_chosen_beside_zero(*call);
        call->replaceAllUsesWith(in_registers(at, {call->getArgOperand(0), exponent}, [&](auto operands) {
            llvm::Value* const result = scaled(at, *operands[0], *operands[1]);
            return masks_zero ? zero_below_least(at, *result, *operands[1]) : result;
        }));
        call->eraseFromParent();
    }
}

}  // namespace polder::compiler
