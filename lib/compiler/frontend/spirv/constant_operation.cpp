// OpSpecConstantOp: the instruction is translated as in the body of a function, into a temporary function, and LLVM folds
// the resulting instructions to a constant.
#include "body.h"
#include "module_level.h"

#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/IR/Constants.h>

namespace polder::compiler::spirv {
namespace {

bool emit_operation(Body& body, const Instruction& operation) {
    switch (operation.opcode) {
    case spv::OpAccessChain:
    case spv::OpInBoundsAccessChain:
    case spv::OpPtrAccessChain:
    case spv::OpInBoundsPtrAccessChain: return emit_memory(body, operation);
    default: break;
    }
    return emit_arithmetic(body, operation) || emit_comparison(body, operation) || emit_bits(body, operation) ||
           emit_conversion(body, operation) || emit_composite(body, operation);
}

// The constant that the instructions of the block compute for `value`; null when LLVM cannot fold them.
llvm::Constant* fold(llvm::BasicBlock& block, llvm::Value* value) {
    const llvm::DataLayout& layout = block.getModule()->getDataLayout();
    for (llvm::Instruction& instruction : block) {
        llvm::Constant* constant = llvm::ConstantFoldInstruction(&instruction, layout);
        if (constant == nullptr)
            return nullptr;
        instruction.replaceAllUsesWith(constant);
        if (value == &instruction)
            value = constant;
    }
    return llvm::dyn_cast<llvm::Constant>(value);
}

}  // namespace

void define_constant_operation(Translation& translation, const Instruction& instruction) {
    if (instruction.operands.empty() || translation.types().llvm(instruction.type) == nullptr)
        return translation.refuse(instruction, "there is no operation");
    Instruction operation = instruction;
    operation.opcode = static_cast<spv::Op>(instruction.operand(0));
    operation.operands = instruction.operands.subspan(1);
    auto* scratch = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(translation.context()), false),
                                           llvm::GlobalValue::InternalLinkage, "", translation.module());
    Body body(translation, *scratch, Body::Contraction::forbidden);
    llvm::BasicBlock* block = llvm::BasicBlock::Create(translation.context(), "", scratch);
    body.builder().SetInsertPoint(block);
    const bool is_known = emit_operation(body, operation);
    llvm::Value* value = translation.known_value(instruction.result);
    llvm::Constant* constant = value == nullptr || translation.failed() ? nullptr : fold(*block, value);
    if (constant == nullptr) {
        translation.refuse(instruction, is_known ? name_of(operation.opcode) + " of these operands is not a constant"
                                                 : name_of(operation.opcode) + " cannot make a constant");
        constant = llvm::PoisonValue::get(translation.types().llvm(instruction.type));
    }
    translation.define(instruction.result, instruction.type, constant);
    scratch->eraseFromParent();
}

}  // namespace polder::compiler::spirv
