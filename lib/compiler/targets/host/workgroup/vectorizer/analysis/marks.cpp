#include "marks.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Metadata.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler::workgroup {

bool is_left_by_llvm(const llvm::Loop& loop) {
    return (llvm::hasVectorizeTransformation(&loop) & llvm::TM_Disable) != 0;
}

void set_loop_properties(llvm::Instruction& back, llvm::ArrayRef<llvm::StringRef> names, const llvm::MDNode* other) {
    llvm::LLVMContext& context = back.getContext();
    llvm::SmallVector<llvm::Metadata*, 8> properties{nullptr};  // the first is the loop itself
    if (other != nullptr)
        llvm::append_range(properties, llvm::drop_begin(other->operands()));
    for (const llvm::StringRef name : names)
        properties.push_back(llvm::MDNode::get(context, llvm::MDString::get(context, name)));
    llvm::MDNode* const loop = llvm::MDNode::getDistinct(context, properties);
    loop->replaceOperandWith(0, loop);
    back.setMetadata(llvm::LLVMContext::MD_loop, loop);
}

bool is_exchange_call(const llvm::Instruction& instruction) {
    const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    return call && call->getCalledFunction() && call->getCalledFunction()->hasFnAttribute(exchange_attribute);
}

}  // namespace polder::compiler::workgroup
