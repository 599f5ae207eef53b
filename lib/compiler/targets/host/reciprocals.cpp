// A vector of any number of lanes is cut into parts that fit a register. The reciprocal of each part is the processor's estimate and one step
// of Newton's method; the parts are joined again and multiplied with the dividends. Halves are divided as floats.
#include "reciprocals.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/MathExtras.h>
#include <llvm/Target/TargetMachine.h>

namespace polder::compiler {
namespace {

using namespace llvm::PatternMatch;

bool is_approximate_division(const llvm::Instruction& instruction) {
    // Those that LLVM computes from an estimate.
    if (instruction.getOpcode() != llvm::Instruction::FDiv || !instruction.hasAllowReciprocal() ||
        !instruction.hasNoInfs())
        return false;
    const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
    if (!type || !(type->getElementType()->isFloatTy() || type->getElementType()->isHalfTy()))
        return false;
    // The compiler computes divisions by constants.
    const llvm::Value* const divisor = instruction.getOperand(1);
    return !llvm::isa<llvm::Constant>(divisor) && !match(divisor, m_Intrinsic<llvm::Intrinsic::sqrt>());
}

// Replaces the divisions of one function. Divisions by the same vector in a block share its reciprocal.
class Divisions {
public:
    Divisions(llvm::LLVMContext& context, unsigned lanes_max, bool has_avx512vl)
        : builder_(context), lanes_max_(lanes_max), has_avx512vl_(has_avx512vl) {
        llvm::FastMathFlags flags;
        flags.setAllowContract();
        builder_.setFastMathFlags(flags);
    }

    void replace(llvm::Instruction& division) {
        builder_.SetInsertPoint(&division);
        llvm::Type* const type = division.getType();
        const auto* const vector = llvm::cast<llvm::FixedVectorType>(type);
        llvm::Type* const wide = llvm::FixedVectorType::get(builder_.getFloatTy(), vector->getNumElements());
        llvm::Value*& known = reciprocals_[{division.getParent(), division.getOperand(1)}];
        if (!known)
            known = reciprocal(builder_.CreateFPExt(division.getOperand(1), wide));
        llvm::Value* quotient = known;
        if (!match(division.getOperand(0), m_FPOne()))
            quotient = builder_.CreateFMul(builder_.CreateFPExt(division.getOperand(0), wide), known);
        quotient = builder_.CreateFPTrunc(quotient, type);
        quotient->takeName(&division);
        division.replaceAllUsesWith(quotient);
        division.eraseFromParent();
    }

private:
    // Of any number of lanes: filled up to a power of two, and in parts of at most a register.
    llvm::Value* reciprocal(llvm::Value* divisor) {
        const unsigned lanes = llvm::cast<llvm::FixedVectorType>(divisor->getType())->getNumElements();
        const unsigned filled = std::max(4U, static_cast<unsigned>(llvm::PowerOf2Ceil(lanes)));
        const unsigned part = std::min(filled, lanes_max_);
        llvm::SmallVector<llvm::Value*, 4> parts;
        for (unsigned first = 0; first < lanes; first += part)
            parts.push_back(refined(lanes == part ? divisor : shuffle(divisor, first, part, lanes)));
        llvm::Value* const joined = llvm::concatenateVectors(builder_, parts);
        const unsigned made = llvm::cast<llvm::FixedVectorType>(joined->getType())->getNumElements();
        return made == lanes ? joined : shuffle(joined, 0, lanes, lanes);
    }

    // `count` lanes from `first` on; those from `end` on have any value.
    llvm::Value* shuffle(llvm::Value* value, unsigned first, unsigned count, unsigned end) {
        llvm::SmallVector<int, 16> indices;
        for (unsigned i = first; i < first + count; ++i)
            indices.push_back(i < end ? static_cast<int>(i) : llvm::PoisonMaskElem);
        return builder_.CreateShuffleVector(value, indices);
    }

    // Newton's step from the estimate, whose error term is at most 1.5 * 2^-12. Its square is added where it is more than 2^-14.
    llvm::Value* refined(llvm::Value* divisor) {
        llvm::Type* const type = divisor->getType();
        llvm::Value* const start = estimate(divisor);
        llvm::Value* const error =
            builder_.CreateFSub(llvm::ConstantFP::get(type, 1), builder_.CreateFMul(divisor, start));
        llvm::Value* const limit = llvm::ConstantFP::get(type, 0x1p-8);
        llvm::Value* limited = builder_.CreateSelect(builder_.CreateFCmpOLT(error, limit), error, limit);
        if (!has_14_bits(llvm::cast<llvm::FixedVectorType>(type)->getNumElements()))
            limited = builder_.CreateFAdd(builder_.CreateFMul(limited, limited), limited);
        return builder_.CreateFAdd(builder_.CreateFMul(start, limited), start);
    }

    bool has_14_bits(unsigned lanes) const { return lanes == 16 || has_avx512vl_; }

    llvm::Value* estimate(llvm::Value* divisor) {
        llvm::Type* const type = divisor->getType();
        const unsigned lanes = llvm::cast<llvm::FixedVectorType>(type)->getNumElements();
        if (has_14_bits(lanes)) {
            const auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512_rcp14_ps_512
                            : lanes == 8 ? llvm::Intrinsic::x86_avx512_rcp14_ps_256
                                         : llvm::Intrinsic::x86_avx512_rcp14_ps_128;
            llvm::Value* const all = llvm::ConstantInt::getAllOnesValue(builder_.getIntNTy(std::max(8U, lanes)));
            return builder_.CreateIntrinsic(id, {}, {divisor, llvm::Constant::getNullValue(type), all});
        }
        return builder_.CreateIntrinsic(
            lanes == 8 ? llvm::Intrinsic::x86_avx_rcp_ps_256 : llvm::Intrinsic::x86_sse_rcp_ps, {}, {divisor});
    }

    llvm::IRBuilder<> builder_;
    unsigned lanes_max_;
    bool has_avx512vl_;
    llvm::DenseMap<std::pair<llvm::BasicBlock*, llvm::Value*>, llvm::Value*> reciprocals_;
};

}  // namespace

void divide_by_estimates(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86())
        return;
    llvm::SmallVector<llvm::Instruction*> found;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (is_approximate_division(instruction))
            found.push_back(&instruction);
    if (found.empty())
        return;
    const uint64_t bits =
        machine.getTargetTransformInfo(function).getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector);
    Divisions divisions(function.getContext(), static_cast<unsigned>(std::clamp<uint64_t>(bits / 32, 4, 16)),
                        machine.getMCSubtargetInfo()->checkFeatures("+avx512vl"));
    for (llvm::Instruction* const division : found)
        divisions.replace(*division);
}

}  // namespace polder::compiler
