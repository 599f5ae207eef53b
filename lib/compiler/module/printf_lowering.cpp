#include "printf_lowering.h"

#include "launch_context.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler {
namespace {

// What is stored for an argument: integers take a whole slot, floats are doubles, a 3-vector has a fourth element.
llvm::Value* promoted(llvm::IRBuilder<>& builder, llvm::Value* value) {
    llvm::Type* type = value->getType();
    if (type->isIntegerTy() && type->getIntegerBitWidth() < 64)
        return builder.CreateSExt(value, builder.getInt64Ty());
    if (type->isHalfTy() || type->isFloatTy())
        return builder.CreateFPExt(value, builder.getDoubleTy());
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type); vector != nullptr && vector->getNumElements() == 3)
        return builder.CreateShuffleVector(value, {0, 1, 2, 2});
    return value;
}

void lower(llvm::CallInst& call) {
    llvm::Module& module = *call.getModule();
    llvm::IRBuilder<> builder(&call);

    const std::vector<PackedArgument> arguments = pack_print_arguments(builder, call);
    const uint64_t size = arguments.empty() ? 0 : arguments.back().offset + arguments.back().bytes;
    llvm::Function& function = *call.getFunction();
    llvm::IRBuilder<> entry(&function.getEntryBlock(), function.getEntryBlock().getFirstInsertionPt());
    auto* block = entry.CreateAlloca(llvm::ArrayType::get(builder.getInt8Ty(), std::max(size, slot_bytes)));
    block->setAlignment(llvm::Align(slot_bytes));
    for (const PackedArgument& argument : arguments)
        builder.CreateAlignedStore(argument.value,
                                   builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), block, argument.offset),
                                   llvm::Align(slot_bytes));

    llvm::FunctionCallee callee =
        module.getOrInsertFunction("polder_printf", builder.getInt32Ty(), builder.getPtrTy(), builder.getPtrTy(),
                                   builder.getPtrTy(), builder.getInt64Ty());
    llvm::Value* result = builder.CreateCall(
        callee, {call_launch_context(builder, module), call.getArgOperand(0), block, builder.getInt64(size)});
    call.replaceAllUsesWith(result);
    call.eraseFromParent();
}

} // namespace

std::vector<PackedArgument> pack_print_arguments(llvm::IRBuilder<>& builder, const llvm::CallInst& call) {
    const llvm::DataLayout& layout = call.getModule()->getDataLayout();
    std::vector<PackedArgument> packed;
    uint64_t offset = 0;
    for (unsigned i = 1; i < call.arg_size(); ++i) {
        llvm::Value* const value = promoted(builder, call.getArgOperand(i));
        const uint64_t bytes = llvm::alignTo(layout.getTypeStoreSize(value->getType()).getFixedValue(), slot_bytes);
        packed.push_back({value, offset, bytes});
        offset += bytes;
    }
    return packed;
}

void lower_printf(llvm::Module& module) {
    llvm::Function* function = module.getFunction("printf");
    if (function == nullptr || !function->isDeclaration())
        return;
    for (llvm::User* user : llvm::make_early_inc_range(function->users()))
        if (auto* call = llvm::dyn_cast<llvm::CallInst>(user); call != nullptr && call->getCalledFunction() == function)
            lower(*call);
}

} // namespace polder::compiler
