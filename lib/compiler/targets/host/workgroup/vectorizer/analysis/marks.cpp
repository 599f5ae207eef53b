#include "marks.h"

#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

bool is_exchange_call(const llvm::Instruction& instruction) {
    const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    return call && call->getCalledFunction() && call->getCalledFunction()->hasFnAttribute(exchange_attribute);
}

}  // namespace polder::compiler::workgroup
