// A vector of any number of lanes is cut into parts that fit a register. The reciprocal of each part, or of its root, is the processor's estimate
// and one step of Newton's method, multiplied with the dividend. Halves are divided as floats.
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
#include <llvm/IR/ValueHandle.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/MathExtras.h>
#include <llvm/Target/TargetMachine.h>

namespace polder::compiler {
namespace {

using namespace llvm::PatternMatch;

bool is_root(const llvm::Value* value) { return match(value, m_Intrinsic<llvm::Intrinsic::sqrt>()); }

// A divisor that is a root, or the product of one and another number.
struct Divisor {
    llvm::Value* root = nullptr;
    llvm::Value* other = nullptr;
};

Divisor divisor_with_root(llvm::Value* value) {
    Divisor found;
    if (is_root(value))
        found.root = value;
    else
        match(value,
              m_c_FMul(m_CombineAnd(m_Intrinsic<llvm::Intrinsic::sqrt>(), m_Value(found.root)), m_Value(found.other)));
    return found;
}

// By a number that is no root. With AVX-512 estimates are right for divisors of all sizes, so that built-in functions (native_recip) may have them that
// do not say that there are no infinities.
bool is_approximate_division_by_number(const llvm::Instruction& instruction, bool has_avx512vl) {
    // The compiler computes divisions by constants.
    const llvm::Type* const type = instruction.getType();
    const bool may_be_estimated = instruction.hasNoInfs() || (has_avx512vl && !instruction.hasAllowReassoc());
    return llvm::isa<llvm::FixedVectorType>(type) && may_be_estimated &&
           !llvm::isa<llvm::Constant>(instruction.getOperand(1)) &&
           (type->getScalarType()->isFloatTy() || type->getScalarType()->isHalfTy());
}

// Types whose reciprocal roots the processor estimates: with AVX-512 also doubles.
bool has_estimated_roots(const llvm::Type* type, bool has_avx512vl) {
    const llvm::Type* const element = type->getScalarType();
    return (element->isFloatTy() || (element->isDoubleTy() && has_avx512vl)) &&
           !llvm::isa<llvm::ScalableVectorType>(type);
}

// Those that LLVM computes from an estimate: vectors; by a root, or a product with one, also numbers, and also where there may be infinities.
bool is_approximate_division(const llvm::Instruction& instruction, bool has_avx512vl) {
    if (instruction.getOpcode() != llvm::Instruction::FDiv || !instruction.hasAllowReciprocal())
        return false;
    if (divisor_with_root(instruction.getOperand(1)).root != nullptr &&
        has_estimated_roots(instruction.getType(), has_avx512vl))
        return true;
    return is_approximate_division_by_number(instruction, has_avx512vl);
}

// Replaces the divisions of one function. Divisions by the same vector in a block share its reciprocal.
class Divisions {
public:
    Divisions(llvm::LLVMContext& context, unsigned lanes_max, const llvm::MCSubtargetInfo& processor)
        : builder_(context), lanes_max_(lanes_max), has_avx512vl_(processor.checkFeatures("+avx512vl")),
          has_avx512dq_(processor.checkFeatures("+avx512dq")) {
        llvm::FastMathFlags flags;
        flags.setAllowContract();
        builder_.setFastMathFlags(flags);
    }

    void replace(llvm::Instruction& division) {
        builder_.SetInsertPoint(&division);
        llvm::Type* const type = division.getType();
        llvm::Type* const wide =
            type->getScalarType()->isDoubleTy() ? type : type->getWithNewType(builder_.getFloatTy());
        llvm::Value* const dividend =
            match(division.getOperand(0), m_FPOne()) ? nullptr : builder_.CreateFPExt(division.getOperand(0), wide);
        llvm::Value* const quotient = builder_.CreateFPTrunc(by_divisor(dividend, division), type);
        if (!quotient->hasName())
            quotient->takeName(&division);
        division.replaceAllUsesWith(quotient);
        division.eraseFromParent();
    }

private:
    llvm::Value* by_divisor(llvm::Value* dividend, llvm::Instruction& division) {
        const Divisor divisor = divisor_with_root(division.getOperand(1));
        if (divisor.root == nullptr || !has_estimated_roots(division.getType(), has_avx512vl_))
            return by_number(dividend, division);
        if (divisor.other == nullptr)
            return by_root(dividend, divisor.root, division);
        if (divisor.other == llvm::cast<llvm::IntrinsicInst>(divisor.root)->getArgOperand(0))
            return by_cube_of_root(dividend, divisor.root, division);
        return is_approximate_division_by_number(division, has_avx512vl_) ? by_number(dividend, division)
                                                                          : by_product(dividend, divisor, division);
    }

    // a sqrt(a), as between bodies that attract each other. LLVM takes the root of a a a, which overflows where a is more than 2^42. One factor after
    // the other: the product of two may overflow where the quotient does not.
    llvm::Value* by_cube_of_root(llvm::Value* dividend, llvm::Value* root, llvm::Instruction& division) {
        llvm::Value* const reciprocal = by_root(nullptr, root, division);
        llvm::Value* const first = dividend ? builder_.CreateFMul(dividend, reciprocal) : reciprocal;
        return builder_.CreateFMul(builder_.CreateFMul(first, reciprocal), reciprocal);
    }

    llvm::Value* by_product(llvm::Value* dividend, const Divisor& divisor, llvm::Instruction& division) {
        auto* const inner = llvm::BinaryOperator::CreateFDiv(by_root(nullptr, divisor.root, division), divisor.other);
        builder_.Insert(inner);
        inner->copyFastMathFlags(&division);
        const llvm::WeakTrackingVH quotient(inner);
        if (is_approximate_division(*inner, has_avx512vl_))
            replace(*inner);
        builder_.SetInsertPoint(&division);
        return dividend ? builder_.CreateFMul(dividend, quotient) : static_cast<llvm::Value*>(quotient);
    }

    // Without a dividend, of 1.
    llvm::Value* by_number(llvm::Value* dividend, llvm::Instruction& division) {
        llvm::Value* const divisor = division.getOperand(1);
        llvm::Value*& known = reciprocals_[{division.getParent(), divisor}];
        if (!known)
            known = in_parts(builder_.CreateFPExt(divisor, divisor->getType()->getWithNewType(builder_.getFloatTy())),
                             [&](llvm::Value* part) { return refined(part); });
        return dividend ? builder_.CreateFMul(dividend, known) : known;
    }

    // Newton's step from the estimate r of 1 / sqrt(a) is -r / 2 * (a r r - 3), where the factor is -2 but for at most 3 * 2^-12. The dividend is
    // multiplied first, while the factor is computed.
    llvm::Value* by_root(llvm::Value* dividend, llvm::Value* root, llvm::Instruction& division) {
        if (has_avx512vl_)
            return by_root_in_one_step(dividend, root, division);
        auto& [half, factor] = root_factors_[{division.getParent(), root}];
        if (!half) {
            llvm::Value* const radicand = llvm::cast<llvm::IntrinsicInst>(root)->getArgOperand(0);
            llvm::Type* const type = radicand->getType();
            llvm::Value* const start = in_parts(radicand, [&](llvm::Value* part) { return estimate(part, Of::root); });
            llvm::Value* const product = builder_.CreateFMul(builder_.CreateFMul(radicand, start), start);
            factor = smaller(builder_.CreateFSub(product, llvm::ConstantFP::get(type, 3)),
                             llvm::ConstantFP::get(type, -2 + 0x1p-8));
            half = builder_.CreateFMul(start, llvm::ConstantFP::get(type, -0.5));
        }
        return builder_.CreateFMul(dividend ? builder_.CreateFMul(dividend, half) : half, factor);
    }

    // From an estimate r of 14 bits: with e = 1 - a r r, which a fused operation computes exactly but for the product a r, the reciprocal is
    // r (1 + e / 2 + 3 / 8 e^2 + ...), within 1.2 ulp. e is NaN for 0 and infinity, whose estimates are right; a positive e keeps them. An infinite
    // dividend would be NaN in the sum q + q e / 2 if e is negative, hence the product for it.
    llvm::Value* by_root_in_one_step(llvm::Value* dividend, llvm::Value* root, llvm::Instruction& division) {
        RootParts& parts = root_parts_[{division.getParent(), root}];
        llvm::Type* const type = root->getType();
        if (!parts.start) {
            llvm::Value* const radicand = llvm::cast<llvm::IntrinsicInst>(root)->getArgOperand(0);
            llvm::Value* const start = in_parts(radicand, [&](llvm::Value* part) { return estimate(part, Of::root); });
            parts.start = start;
            parts.e = smaller(fused(builder_.CreateFNeg(builder_.CreateFMul(radicand, start)), start, number(type, 1)),
                              number(type, 0x1p-8));
        }
        if (!dividend && type->isVectorTy() && type->getScalarType()->isFloatTy())
            return fused(halved_estimate(parts.start), parts.e, parts.start);
        if (!parts.correction)
            parts.correction = correction_of(parts.e);
        if (!dividend)
            return fused(parts.start, parts.correction, parts.start);
        // The root itself: of infinity, NaN.
        if (dividend == llvm::cast<llvm::IntrinsicInst>(root)->getArgOperand(0)) {
            llvm::Value* const product = builder_.CreateFMul(dividend, parts.start);
            return fused(product, parts.correction, product);
        }
        return builder_.CreateFMul(builder_.CreateFMul(dividend, parts.start),
                                   builder_.CreateFAdd(parts.correction, number(type, 1)));
    }

    // e / 2, of doubles with three terms more.
    llvm::Value* correction_of(llvm::Value* e) {
        llvm::Type* const type = e->getType();
        llvm::Value* factor = number(type, 0.5);
        if (type->getScalarType()->isDoubleTy())
            factor = fused(fused(number(type, 35.0 / 128), e, number(type, 5.0 / 16)), builder_.CreateFMul(e, e),
                           fused(number(type, 3.0 / 8), e, factor));
        return builder_.CreateFMul(e, factor);
    }

    // Half of an estimate of a root's reciprocal, by its exponent: beside the products, with which a processor's multipliers are busy. 0 where the
    // estimate is 0 or negative, which is kept then.
    llvm::Value* halved_estimate(llvm::Value* start) {
        llvm::Type* const words = llvm::VectorType::getInteger(llvm::cast<llvm::VectorType>(start->getType()));
        llvm::Value* const less =
            builder_.CreateSub(builder_.CreateBitCast(start, words), llvm::ConstantInt::get(words, 1U << 23));
        llvm::Value* const half =
            builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, less, llvm::Constant::getNullValue(words));
        return builder_.CreateBitCast(half, start->getType());
    }

    static llvm::Constant* number(llvm::Type* type, double value) { return llvm::ConstantFP::get(type, value); }

    llvm::Value* fused(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
        return builder_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
    }

    // Of any number of lanes: filled up to a power of two, and in parts of at most a register.
    llvm::Value* in_parts(llvm::Value* all, llvm::function_ref<llvm::Value*(llvm::Value*)> compute) {
        if (!all->getType()->isVectorTy()) {
            auto* const one = llvm::FixedVectorType::get(all->getType(), 1);
            llvm::Value* const alone = builder_.CreateInsertElement(llvm::PoisonValue::get(one), all, uint64_t{0});
            return builder_.CreateExtractElement(in_parts(alone, compute), uint64_t{0});
        }
        const unsigned lanes = llvm::cast<llvm::FixedVectorType>(all->getType())->getNumElements();
        const unsigned halved = all->getType()->getScalarType()->isDoubleTy() ? 2 : 1;
        const unsigned filled = std::max(4U / halved, static_cast<unsigned>(llvm::PowerOf2Ceil(lanes)));
        const unsigned part = std::min(filled, lanes_max_ / halved);
        llvm::SmallVector<llvm::Value*, 4> parts;
        for (unsigned first = 0; first < lanes; first += part)
            parts.push_back(compute(lanes == part ? all : shuffle(all, first, part, lanes)));
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
        llvm::Value* const start = estimate(divisor, Of::number);
        llvm::Value* const error =
            builder_.CreateFSub(llvm::ConstantFP::get(type, 1), builder_.CreateFMul(divisor, start));
        llvm::Constant* const limit = llvm::ConstantFP::get(type, 0x1p-8);
        // The sum with the square is NaN also where the term is -infinity, so that the minimum is the limit.
        llvm::Value* const limited =
            has_14_bits(llvm::cast<llvm::FixedVectorType>(type)->getNumElements())
                ? nearer_to_zero(error, limit)
                : smaller(builder_.CreateFAdd(builder_.CreateFMul(error, error), error), limit);
        return builder_.CreateFAdd(builder_.CreateFMul(start, limited), start);
    }

    // The limit if the value is NaN.
    llvm::Value* smaller(llvm::Value* value, llvm::Value* limit) {
        return builder_.CreateSelect(builder_.CreateFCmpOLT(value, limit), value, limit);
    }

    // Like `smaller`; with AVX-512 also the limit if the value is -infinity, which the error term is for a divisor whose reciprocal is infinite.
    llvm::Value* nearer_to_zero(llvm::Value* value, llvm::Value* limit) {
        const unsigned lanes = llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements();
        if (!has_avx512dq_ || !has_14_bits(lanes))
            return smaller(value, limit);
        const auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512_mask_range_ps_512
                        : lanes == 8 ? llvm::Intrinsic::x86_avx512_mask_range_ps_256
                                     : llvm::Intrinsic::x86_avx512_mask_range_ps_128;
        llvm::Value* const smaller_of_sizes_with_its_sign = builder_.getInt32(0b0110);
        llvm::Value* const all = llvm::ConstantInt::getAllOnesValue(builder_.getIntNTy(std::max(8U, lanes)));
        llvm::SmallVector<llvm::Value*> arguments{value, limit, smaller_of_sizes_with_its_sign,
                                                  llvm::Constant::getNullValue(value->getType()), all};
        if (lanes == 16)
            arguments.push_back(builder_.getInt32(4));  // the current rounding mode
        return builder_.CreateIntrinsic(id, {}, arguments);
    }

    enum class Of : uint8_t { number, root };

    bool has_14_bits(unsigned lanes) const { return lanes == 16 || has_avx512vl_; }

    llvm::Value* estimate(llvm::Value* divisor, Of of) {
        using namespace llvm::Intrinsic;
        llvm::Type* const type = divisor->getType();
        const unsigned lanes = llvm::cast<llvm::FixedVectorType>(type)->getNumElements();
        const auto choose = [&](ID number, ID root) { return of == Of::root ? root : number; };
        llvm::Value* const all_lanes = llvm::ConstantInt::getAllOnesValue(builder_.getIntNTy(std::max(8U, lanes)));
        llvm::Constant* const none = llvm::Constant::getNullValue(type);
        if (type->getScalarType()->isDoubleTy()) {
            const ID id = lanes == 8   ? x86_avx512_rsqrt14_pd_512
                          : lanes == 4 ? x86_avx512_rsqrt14_pd_256
                                       : x86_avx512_rsqrt14_pd_128;
            return builder_.CreateIntrinsic(id, {}, {divisor, none, all_lanes});
        }
        if (has_14_bits(lanes)) {
            const ID id = lanes == 16  ? choose(x86_avx512_rcp14_ps_512, x86_avx512_rsqrt14_ps_512)
                          : lanes == 8 ? choose(x86_avx512_rcp14_ps_256, x86_avx512_rsqrt14_ps_256)
                                       : choose(x86_avx512_rcp14_ps_128, x86_avx512_rsqrt14_ps_128);
            return builder_.CreateIntrinsic(id, {}, {divisor, none, all_lanes});
        }
        const ID id =
            lanes == 8 ? choose(x86_avx_rcp_ps_256, x86_avx_rsqrt_ps_256) : choose(x86_sse_rcp_ps, x86_sse_rsqrt_ps);
        return builder_.CreateIntrinsic(id, {}, {divisor});
    }

    llvm::IRBuilder<> builder_;
    unsigned lanes_max_;
    bool has_avx512vl_;
    bool has_avx512dq_;
    using Place = std::pair<llvm::BasicBlock*, llvm::Value*>;
    llvm::DenseMap<Place, llvm::Value*> reciprocals_;
    llvm::DenseMap<Place, std::pair<llvm::Value*, llvm::Value*>> root_factors_;
    // The estimate of a root's reciprocal, its error, and what makes it exact, if needed.
    struct RootParts {
        llvm::Value *start = nullptr, *e = nullptr, *correction = nullptr;
    };
    llvm::DenseMap<Place, RootParts> root_parts_;
};

}  // namespace

void divide_by_estimates(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86())
        return;
    llvm::SmallVector<llvm::Instruction*> found;
    const bool has_avx512vl = machine.getMCSubtargetInfo()->checkFeatures("+avx512vl");
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (is_approximate_division(instruction, has_avx512vl))
            found.push_back(&instruction);
    if (found.empty())
        return;
    const uint64_t bits =
        machine.getTargetTransformInfo(function).getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector);
    Divisions divisions(function.getContext(), static_cast<unsigned>(std::clamp<uint64_t>(bits / 32, 4, 16)),
                        *machine.getMCSubtargetInfo());
    for (llvm::Instruction* const division : found)
        divisions.replace(*division);
}

}  // namespace polder::compiler
