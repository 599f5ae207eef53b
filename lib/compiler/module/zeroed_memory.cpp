#include "zeroed_memory.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

namespace polder::compiler {
namespace {

// Defined by lib/kernel/cl/local_memory.cl, and by its namesake for GPUs.
constexpr const char* clear_local_memory = "_Z25polder_clear_local_memoryv";

// A lifetime marker makes a variable's contents undefined. Without markers all variables live as long as the call of their function, and
// keep the zeros that are stored at its beginning.
void forget_lifetimes(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function)))
        if (llvm::isa<llvm::LifetimeIntrinsic>(instruction))
            instruction.eraseFromParent();
}

void zero_variables(llvm::Function& function) {
    forget_lifetimes(function);
    const llvm::DataLayout& layout = function.getDataLayout();
    llvm::SmallVector<llvm::AllocaInst*, 16> variables;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction))
            variables.push_back(variable);
    for (llvm::AllocaInst* variable : variables) {
        const auto bytes = variable->getAllocationSize(layout);
        if (!bytes || bytes->isScalable())
            continue;
        llvm::IRBuilder<> builder(variable->getNextNode());
        builder.CreateMemSet(variable, builder.getInt8(0), bytes->getFixedValue(), variable->getAlign());
    }
}

void zero_local_memory(llvm::Function& kernel) {
    llvm::BasicBlock& entry = kernel.getEntryBlock();
    llvm::IRBuilder<> builder(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
    llvm::FunctionCallee clear = kernel.getParent()->getOrInsertFunction(
        clear_local_memory, llvm::FunctionType::get(builder.getVoidTy(), false));
    llvm::CallInst* const call = builder.CreateCall(clear);
    call->setCallingConv(llvm::CallingConv::SPIR_FUNC);
    call->setConvergent();
    auto* const function = llvm::cast<llvm::Function>(clear.getCallee());
    function->setCallingConv(llvm::CallingConv::SPIR_FUNC);
    function->setConvergent();
}

}  // namespace

void zero_memory(llvm::Module& module, std::span<const KernelInfo> kernels, const ZeroedMemory& what) {
    if (what.private_variables)
        for (llvm::Function& function : module)
            if (!function.isDeclaration())
                zero_variables(function);
    if (what.local)
        for (const KernelInfo& kernel : kernels)
            // A kernel that does not see its work-groups has no local memory.
            if (llvm::Function* const function = module.getFunction(kernel.name); function && kernel.sees_work_groups)
                zero_local_memory(*function);
}

}  // namespace polder::compiler
