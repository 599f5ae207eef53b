// `vminps` returns its second operand when one of both is a NaN. So fmin(first, second) is `vminps` where the second operand is a number, and the
// first operand elsewhere. Which lanes have a number in the second operand is known before the first operand is.
#include "masked_minimums.h"

#include <llvm/Analysis/SimplifyQuery.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#include <utility>

namespace polder::compiler {
namespace {

llvm::IntrinsicInst* minimum_of_numbers(llvm::Value* value) {
    auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(value);
    return call != nullptr && (call->getIntrinsicID() == llvm::Intrinsic::minimumnum ||
                               call->getIntrinsicID() == llvm::Intrinsic::maximumnum)
               ? call
               : nullptr;
}

// Where LLVM knows that an operand is a number, one instruction is enough.
bool may_both_be_nan(const llvm::IntrinsicInst& call) {
    const llvm::SimplifyQuery query(call.getDataLayout(), &call);
    return !call.hasNoNaNs() && llvm::none_of(call.args(), [&](const llvm::Use& operand) {
        return llvm::isKnownNeverNaN(operand.get(), query);
    });
}

bool is_maskable(const llvm::IntrinsicInst& call) {
    const llvm::Type* const element = call.getType()->getScalarType();
    return llvm::isa<llvm::FixedVectorType>(call.getType()) && (element->isFloatTy() || element->isDoubleTy()) &&
           may_both_be_nan(call);
}

// Whether the value is probably one of a chain, and so is computed later than the other operand.
bool is_of_chain(llvm::Value* value) { return minimum_of_numbers(value) != nullptr || llvm::isa<llvm::PHINode>(value); }

void mask(llvm::IntrinsicInst& call) {
    llvm::Value *first = call.getArgOperand(0), *second = call.getArgOperand(1);
    if (is_of_chain(second) && !is_of_chain(first))
        std::swap(first, second);
    llvm::IRBuilder<> builder(&call);
    const bool is_least = call.getIntrinsicID() == llvm::Intrinsic::minimumnum;
    llvm::Value* const is_first =
        builder.CreateFCmp(is_least ? llvm::CmpInst::FCMP_OLT : llvm::CmpInst::FCMP_OGT, first, second);
    llvm::Value* const result = builder.CreateSelect(builder.CreateFCmpORD(second, second),
                                                     builder.CreateSelect(is_first, first, second), first);
    result->takeName(&call);
    call.replaceAllUsesWith(result);
    call.eraseFromParent();
}

}  // namespace

void mask_minimums(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86() || !machine.getMCSubtargetInfo()->checkFeatures("+avx"))
        return;
    llvm::SmallVector<llvm::IntrinsicInst*> calls;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (llvm::IntrinsicInst* const call = minimum_of_numbers(&instruction); call && is_maskable(*call))
            calls.push_back(call);
    for (llvm::IntrinsicInst* const call : llvm::reverse(calls))  // so that operands are still calls
        mask(*call);
}

}  // namespace polder::compiler
