#include "minimum_zeros.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

namespace polder::compiler {

void ignore_order_of_zeros(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
            call != nullptr && (call->getIntrinsicID() == llvm::Intrinsic::minimumnum ||
                                call->getIntrinsicID() == llvm::Intrinsic::maximumnum))
            call->setHasNoSignedZeros(true);
}

}  // namespace polder::compiler
