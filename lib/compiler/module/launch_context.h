// A call of the intrinsic that returns the address of the LaunchContext (kernel_abi.h). Kernel code uses it until the work-group pass
// replaces it by a parameter.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

namespace polder::compiler {

[[nodiscard]] inline llvm::CallInst* call_launch_context(llvm::IRBuilderBase& builder, llvm::Module& module) {
    llvm::FunctionCallee callee = module.getOrInsertFunction("_polder_launch_context", builder.getPtrTy());
    auto* function = llvm::cast<llvm::Function>(callee.getCallee());
    function->setMemoryEffects(llvm::MemoryEffects::none());
    function->setDoesNotThrow();
    function->addFnAttr(llvm::Attribute::WillReturn);
    return builder.CreateCall(callee);
}

}  // namespace polder::compiler
