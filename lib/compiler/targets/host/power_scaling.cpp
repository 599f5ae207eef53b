// polder-retarget-builtins marks such calls of llvm.ldexp with the flag `afn`: where e is a NaN, x is one, too. Longer vectors than the registers are
// scaled in parts.
#include "power_scaling.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#include <numeric>

namespace polder::compiler {
namespace {

constexpr unsigned register_bits = 512;

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

llvm::Intrinsic::ID instruction_for(bool is_double, unsigned bits) {
    switch (bits) {
    case 128:
        return is_double ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_128
                         : llvm::Intrinsic::x86_avx512_mask_scalef_ps_128;
    case 256:
        return is_double ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_256
                         : llvm::Intrinsic::x86_avx512_mask_scalef_ps_256;
    case register_bits:
        return is_double ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512
                         : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
    default: return llvm::Intrinsic::not_intrinsic;
    }
}

// Of a whole register or less.
llvm::Value* scaled(llvm::IRBuilder<>& at, llvm::Value& x, llvm::Value& exponent) {
    const auto& type = *llvm::cast<llvm::FixedVectorType>(x.getType());
    const unsigned bits = type.getPrimitiveSizeInBits().getFixedValue(),
                   mask_bits = std::max(type.getNumElements(), 8U);
    llvm::SmallVector<llvm::Value*> arguments{&x, &exponent, llvm::PoisonValue::get(x.getType()),
                                              llvm::ConstantInt::getAllOnesValue(at.getIntNTy(mask_bits))};
    if (bits == register_bits)
        arguments.push_back(at.getInt32(4));  // rounds in the current mode
    return at.CreateIntrinsic(instruction_for(type.getElementType()->isDoubleTy(), bits), arguments);
}

llvm::Value* part(llvm::IRBuilder<>& at, llvm::Value& whole, unsigned first, unsigned count) {
    llvm::SmallVector<int> places(count);
    std::iota(places.begin(), places.end(), static_cast<int>(first));
    return at.CreateShuffleVector(&whole, places);
}

llvm::Value* scaled_in_parts(llvm::IRBuilder<>& at, llvm::Value& x, llvm::Value& exponent) {
    const unsigned elements = llvm::cast<llvm::FixedVectorType>(x.getType())->getNumElements();
    if (x.getType()->getPrimitiveSizeInBits() <= register_bits)
        return scaled(at, x, exponent);
    llvm::Value* const low = scaled_in_parts(at, *part(at, x, 0, elements / 2), *part(at, exponent, 0, elements / 2));
    llvm::Value* const high =
        scaled_in_parts(at, *part(at, x, elements / 2, elements / 2), *part(at, exponent, elements / 2, elements / 2));
    llvm::SmallVector<int> places(elements);
    std::iota(places.begin(), places.end(), 0);
    return at.CreateShuffleVector(low, high, places);
}

bool has_instruction(const llvm::Type& type) {
    const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(&type);
    return vector && llvm::isPowerOf2_32(vector->getNumElements()) && vector->getPrimitiveSizeInBits() >= 128 &&
           (vector->getElementType()->isDoubleTy() || vector->getElementType()->isFloatTy());
}

}  // namespace

void scale_by_instructions(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86() || !machine.getMCSubtargetInfo()->checkFeatures("+avx512f,+avx512vl"))
        return;
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
        auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        llvm::Value* const exponent = call && has_instruction(*call->getType()) ? exponent_of(*call) : nullptr;
        if (exponent == nullptr)
            continue;
        llvm::IRBuilder<> at(call);
        call->replaceAllUsesWith(scaled_in_parts(at, *call->getArgOperand(0), *exponent));
        call->eraseFromParent();
    }
}

}  // namespace polder::compiler
