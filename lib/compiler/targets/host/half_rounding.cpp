#include "half_rounding.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

namespace polder::compiler {

void round_halves_to_even(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        if (call && call->getIntrinsicID() == llvm::Intrinsic::rint && call->getType()->getScalarType()->isHalfTy())
            call->setCalledFunction(llvm::Intrinsic::getOrInsertDeclaration(
                function.getParent(), llvm::Intrinsic::roundeven, {call->getType()}));
    }
}

}  // namespace polder::compiler
