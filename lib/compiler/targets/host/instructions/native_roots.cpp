#include "native_roots.h"

#include "machine/zen.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/MC/MCSubtargetInfo.h>

namespace polder::compiler {
namespace {

// Roots of reciprocal roots (native_rsqrt) have the permission, too.
bool is_divisor(const llvm::Instruction& root) {
    return llvm::any_of(root.users(), [&](const llvm::User* user) {
        const auto* const division = llvm::dyn_cast<llvm::Instruction>(user);
        return division && division->getOpcode() == llvm::Instruction::FDiv && division->getOperand(1) == &root;
    });
}

bool is_native_root(const llvm::Instruction& instruction) {
    const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::sqrt &&
           llvm::isa<llvm::FixedVectorType>(call->getType()) && call->getType()->getScalarType()->isFloatTy() &&
           call->hasAllowReciprocal() && !call->hasAllowReassoc() && !is_divisor(*call);
}

}  // namespace

void estimate_native_roots(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86() || is_zen(machine) ||
        !machine.getMCSubtargetInfo()->checkFeatures("+avx512vl,+avx512dq"))
        return;
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
        if (!is_native_root(instruction))
            continue;
        auto& root = llvm::cast<llvm::IntrinsicInst>(instruction);
        llvm::Value* const x = root.getArgOperand(0);
        llvm::IRBuilder<> builder(&root);
        llvm::Value* const one = llvm::ConstantFP::get(x->getType(), 1);
        llvm::Value* const is_own_root = builder.createIsFPClass(x, llvm::fcZero | llvm::fcSubnormal | llvm::fcPosInf);
        llvm::Value* const usual = builder.CreateSelect(is_own_root, one, x);
        llvm::Value* const inverse =
            builder.CreateFDiv(one, builder.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, usual));
        if (auto* const division = llvm::dyn_cast<llvm::Instruction>(inverse))
            division->setHasAllowReciprocal(true);
        llvm::Value* const result = builder.CreateSelect(is_own_root, x, builder.CreateFMul(usual, inverse));
        root.replaceAllUsesWith(result);
        root.eraseFromParent();
    }
}

}  // namespace polder::compiler
