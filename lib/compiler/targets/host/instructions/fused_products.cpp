// The product of two floats is exact as a double. Its sum with the third operand, rounded to a double and then to a float, would be rounded
// twice: so the double is rounded to odd. A double between two neighbours that is not exact is the one whose last bit is 1, and
// the second rounding sees on which side of a tie the exact sum lies.
//
// The product of two doubles is the sum of two doubles, its rounded value and the rest, which the products of the operands' halves give. The sum of
// these two and the third operand is the sum of a number and a rest that is rounded to odd.
#include "fused_products.h"

#include "targets/host/workgroup/vectorizer/code/rare_calls.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <optional>

namespace polder::compiler {
namespace {

using namespace llvm::PatternMatch;

constexpr const char* one_lane_name = "polder_fma_of_doubles";

bool is_of(const llvm::Instruction& instruction, bool (llvm::Type::*is_kind)() const) {
    const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::fma &&
           (call->getType()->getScalarType()->*is_kind)() && !llvm::isa<llvm::ScalableVectorType>(call->getType());
}

// A number as the sum of two. Each operation is rounded as it is written, so nothing here has fast-math flags.
struct Pair {
    llvm::Value *high, *low;
};

class FusedProducts {
public:
    explicit FusedProducts(llvm::Function& function) : function_(function), builder_(function.getContext()) {}

    void compute(llvm::IntrinsicInst& call) {
        builder_.SetInsertPoint(&call);
        llvm::Value* const result = call.getType()->getScalarType()->isFloatTy() ? of_floats(call) : of_doubles(call);
        result->takeName(&call);
        call.replaceAllUsesWith(result);
        call.eraseFromParent();
    }

private:
    llvm::Value* of_floats(llvm::IntrinsicInst& call) {
        const bool is_close = call.hasApproxFunc();
        llvm::Value* const product =
            builder_.CreateFMul(widened(call.getArgOperand(0)), widened(call.getArgOperand(1)));
        llvm::Value* const addend =
            is_close ? widened_before_rounding(call.getArgOperand(2)) : widened(call.getArgOperand(2));
        if (is_close || is_rest_of_product(call)) {
            llvm::Value* const sum = builder_.CreateFAdd(product, addend);
            llvm::Value* const result = builder_.CreateFPTrunc(sum, call.getType());
            before_rounding_[result] = sum;
            return result;
        }
        return builder_.CreateFPTrunc(rounded_to_odd(sum_of(product, addend)), call.getType());
    }

    llvm::Value* of_doubles(llvm::IntrinsicInst& call) {
        llvm::Value *const a = call.getArgOperand(0), *const b = call.getArgOperand(1),
                           *const c = call.getArgOperand(2);
        const Pair product = product_of(a, b);
        if (call.hasApproxFunc()) {
            if (is_rest_of_product(call))
                return product.low;
            if (const std::optional<double> constant = constant_of(b); constant && call.hasAllowReciprocal())
                return of_whole(a, *constant, c);
            const Pair sum = sum_of(product.high, c);
            return builder_.CreateFAdd(sum.high, builder_.CreateFAdd(sum.low, product.low));
        }
        llvm::Value* const result = is_rest_of_product(call) ? product.low : rounded_once(product, c);
        return with_library(call, result, is_moderate(a, b, c, product.high));
    }

    static std::optional<double> constant_of(llvm::Value* value) {
        const llvm::APFloat* constant = nullptr;
        return match(value, m_APFloat(constant)) ? std::optional(constant->convertToDouble()) : std::nullopt;
    }

    llvm::Value* of_whole(llvm::Value* whole, double constant, llvm::Value* sum) {
        constexpr uint64_t lower_bits = 30;  // the others, with the hidden one, are 23
        for (double rest = constant; rest != 0;) {
            const double part = llvm::bit_cast<double>(llvm::bit_cast<uint64_t>(rest) >> lower_bits << lower_bits);
            sum = builder_.CreateFAdd(sum, builder_.CreateFMul(whole, llvm::ConstantFP::get(sum->getType(), part)));
            rest -= part;
        }
        return sum;
    }

    // a * b - (the rounded a * b).
    static bool is_rest_of_product(const llvm::IntrinsicInst& call) {
        llvm::Value* product = nullptr;
        return match(call.getArgOperand(2), m_FNeg(m_Value(product))) &&
               match(product, m_c_FMul(m_Specific(call.getArgOperand(0)), m_Specific(call.getArgOperand(1))));
    }

    llvm::Value* widened(llvm::Value* value) {
        return builder_.CreateFPExt(value, value->getType()->getWithNewType(builder_.getDoubleTy()));
    }

    llvm::Value* widened_before_rounding(llvm::Value* value) {
        llvm::Value* const wide = before_rounding_.lookup(value);
        return wide ? wide : widened(value);
    }

    // Exact unless it overflows.
    Pair sum_of(llvm::Value* a, llvm::Value* b) {
        llvm::Value* const sum = builder_.CreateFAdd(a, b);
        llvm::Value* const of_b = builder_.CreateFSub(sum, a);
        llvm::Value* const rest_of_a = builder_.CreateFSub(a, builder_.CreateFSub(sum, of_b));
        return {sum, builder_.CreateFAdd(rest_of_a, builder_.CreateFSub(b, of_b))};
    }

    // 26 bits each, the lower half with a sign of its own.
    Pair halves_of(llvm::Value* value) {
        llvm::Value* const scaled = builder_.CreateFMul(value, llvm::ConstantFP::get(value->getType(), 0x1p27 + 1));
        llvm::Value* const high = builder_.CreateFSub(scaled, builder_.CreateFSub(scaled, value));
        return {high, builder_.CreateFSub(value, high)};
    }

    Pair product_of(llvm::Value* a, llvm::Value* b) {
        llvm::Value* const product = builder_.CreateFMul(a, b);
        const Pair of_a = halves_of(a), of_b = halves_of(b);
        llvm::Value* rest = builder_.CreateFSub(builder_.CreateFMul(of_a.high, of_b.high), product);
        rest = builder_.CreateFAdd(rest, builder_.CreateFMul(of_a.high, of_b.low));
        rest = builder_.CreateFAdd(rest, builder_.CreateFMul(of_a.low, of_b.high));
        return {product, builder_.CreateFAdd(rest, builder_.CreateFMul(of_a.low, of_b.low))};
    }

    // The sum of a number and a rest that is less than its last bit, rounded to odd: when the last bit is 0, the neighbour towards the rest.
    llvm::Value* rounded_to_odd(const Pair& sum) {
        llvm::Type* const type = sum.high->getType();
        llvm::Type* const whole = type->getWithNewType(builder_.getInt64Ty());
        llvm::Value* const bits = builder_.CreateBitCast(sum.high, whole);
        llvm::Value* const one = llvm::ConstantInt::get(whole, 1);
        llvm::Value* const is_nearer_zero = builder_.CreateAShr(
            builder_.CreateXor(bits, builder_.CreateBitCast(sum.low, whole)), llvm::ConstantInt::get(whole, 63));
        llvm::Value* const step = builder_.CreateOr(is_nearer_zero, one);
        llvm::Value* const is_even = builder_.CreateSub(builder_.CreateAnd(bits, one), one);
        llvm::Value* const is_inexact =
            builder_.CreateSExt(builder_.CreateFCmpONE(sum.low, llvm::Constant::getNullValue(type)), whole);
        llvm::Value* const added = builder_.CreateAnd(builder_.CreateAnd(step, is_even), is_inexact);
        return builder_.CreateBitCast(builder_.CreateAdd(bits, added), type);
    }

    llvm::Value* rounded_once(const Pair& product, llvm::Value* c) {
        const Pair lower = sum_of(c, product.low);
        const Pair upper = sum_of(product.high, lower.high);
        llvm::Value* const rest = rounded_to_odd(sum_of(lower.low, upper.low));
        llvm::Value* const result = builder_.CreateFAdd(upper.high, rest);
        // The product and the third operand then differ only in their signs, or are zeros, whose signs the parts lose.
        llvm::Value* const is_zero = builder_.CreateFCmpOEQ(result, llvm::Constant::getNullValue(c->getType()));
        return builder_.CreateSelect(is_zero, builder_.CreateFAdd(product.high, c), result);
    }

    llvm::Value* size_of(llvm::Value* value) { return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value); }

    // Whether no part overflows, and the last bit of the product is a normal number or 0; false for infinities and NaNs.
    llvm::Value* is_moderate(llvm::Value* a, llvm::Value* b, llvm::Value* c, llvm::Value* product) {
        const auto number = [&](double value) { return llvm::ConstantFP::get(a->getType(), value); };
        llvm::Value *const size_of_a = size_of(a), *const size_of_b = size_of(b), *const size = size_of(product);
        llvm::Value* const b_is_less = builder_.CreateFCmpOLT(size_of_b, size_of_a);
        llvm::Value* const largest = builder_.CreateSelect(b_is_less, size_of_a, size_of_b);
        llvm::Value* const least = builder_.CreateSelect(b_is_less, size_of_b, size_of_a);
        llvm::Value* const is_small_enough =
            builder_.CreateAnd(builder_.CreateFCmpOLT(builder_.CreateFAdd(size, size_of(c)), number(0x1p1000)),
                               builder_.CreateFCmpOLT(largest, number(0x1p990)));
        llvm::Value* const is_large_enough =
            builder_.CreateOr(builder_.CreateFCmpOGE(size, number(0x1p-960)), builder_.CreateFCmpOEQ(least, number(0)));
        return builder_.CreateAnd(is_small_enough, is_large_enough);
    }

    // `result` where it is right, and elsewhere that of the C library.
    llvm::Value* with_library(llvm::IntrinsicInst& call, llvm::Value* result, llvm::Value* is_right) {
        llvm::Value* const is_wrong = builder_.CreateNot(is_right);
        llvm::Value* const is_any_wrong =
            is_wrong->getType()->isVectorTy() ? builder_.CreateOrReduce(is_wrong) : is_wrong;
        llvm::BasicBlock* const before = call.getParent();
        llvm::Instruction* const end =
            llvm::SplitBlockAndInsertIfThen(is_any_wrong, call.getIterator(), /*Unreachable=*/false,
                                            llvm::MDBuilder(function_.getContext()).createUnlikelyBranchWeights());
        builder_.SetInsertPoint(end);
        llvm::Value* const other = is_wrong->getType()->isVectorTy() ? of_lanes(call, *is_wrong, result) : of_one(call);
        llvm::BasicBlock* const from = builder_.GetInsertBlock();
        builder_.SetInsertPoint(&call);
        llvm::PHINode* const merged = builder_.CreatePHI(call.getType(), 2);
        merged->addIncoming(result, before);
        merged->addIncoming(other, from);
        return merged;
    }

    llvm::CallInst* of_one(llvm::IntrinsicInst& call) {
        return builder_.CreateCall(one_lane(), llvm::SmallVector<llvm::Value*>(call.args()));
    }

    llvm::Value* of_lanes(llvm::IntrinsicInst& call, llvm::Value& is_wrong, llvm::Value* result) {
        // call_rare() wants a call of one lane as the pattern.
        llvm::Value* const nothing = llvm::PoisonValue::get(builder_.getDoubleTy());
        llvm::CallInst* const pattern = builder_.CreateCall(one_lane(), {nothing, nothing, nothing});
        llvm::Value* const computed =
            workgroup::call_rare(builder_, *pattern, llvm::SmallVector<llvm::Value*>(call.args()), is_wrong, memory_);
        describe(*function_.getParent()->getFunction(
            (llvm::Twine(one_lane_name) + ".lanes" +
             llvm::Twine(llvm::cast<llvm::FixedVectorType>(call.getType())->getNumElements()))
                .str()));
        pattern->eraseFromParent();
        return builder_.CreateSelect(&is_wrong, computed, result);
    }

    // A function that computes one lane; it remains a call of the C library.
    llvm::Function* one_lane() {
        llvm::Module& module = *function_.getParent();
        if (llvm::Function* const made = module.getFunction(one_lane_name))
            return made;
        llvm::Type* const type = builder_.getDoubleTy();
        auto* const made = llvm::Function::Create(llvm::FunctionType::get(type, {type, type, type}, false),
                                                  llvm::GlobalValue::InternalLinkage, one_lane_name, module);
        for (const auto kind : {llvm::Attribute::Cold, llvm::Attribute::NoInline, llvm::Attribute::NoUnwind})
            made->addFnAttr(kind);
        made->setDoesNotAccessMemory();
        llvm::IRBuilder<> builder(llvm::BasicBlock::Create(function_.getContext(), "entry", made));
        builder.CreateRet(
            builder.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {made->getArg(0), made->getArg(1), made->getArg(2)}));
        describe(*made);
        return made;
    }

    // For the processor that the code around the call is for.
    void describe(llvm::Function& made) const {
        for (const char* const name : {"target-cpu", "prefer-vector-width", "denormal-fp-math"})
            if (function_.hasFnAttribute(name))
                made.addFnAttr(function_.getFnAttribute(name));
        if (const llvm::Attribute features = function_.getFnAttribute("target-features"); features.isValid())
            made.addFnAttr("target-features", workgroup::features_of(made, features.getValueAsString()));
    }

    llvm::Function& function_;
    llvm::IRBuilder<> builder_;
    llvm::AllocaInst* memory_ = nullptr;
    llvm::DenseMap<llvm::Value*, llvm::Value*> before_rounding_;  // of floats, as doubles
};

}  // namespace

void compute_fused_products(llvm::Function& function, const llvm::TargetMachine& machine) {
    const llvm::MCSubtargetInfo& processor = *machine.getMCSubtargetInfo();
    if (!machine.getTargetTriple().isX86() || processor.checkFeatures("+fma") || processor.checkFeatures("+fma4") ||
        function.getName() == one_lane_name)
        return;
    llvm::SmallVector<llvm::IntrinsicInst*> found;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (is_of(instruction, &llvm::Type::isFloatTy) || is_of(instruction, &llvm::Type::isDoubleTy))
            found.push_back(llvm::cast<llvm::IntrinsicInst>(&instruction));
    FusedProducts products(function);
    for (llvm::IntrinsicInst* const call : found)
        products.compute(*call);
}

}  // namespace polder::compiler
