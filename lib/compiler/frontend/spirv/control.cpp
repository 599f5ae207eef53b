// Control flow and calls (SPIR-V specification 3.49.9 and 3.49.17), expect and assume.
#include "body.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;

void begin_block(Body& body, const Instruction& instruction) {
    llvm::BasicBlock* block = body.block(instruction.result);
    if (llvm::BasicBlock& last = body.function().back(); &last != block)
        block->moveAfter(&last);
    body.builder().SetInsertPoint(block);
}

// OpPhi. The value of an edge may be defined later in the text.
void join(Body& body, const Instruction& instruction) {
    llvm::Type* type = body.result_type(instruction);
    llvm::PHINode* phi = body.builder().CreatePHI(type, static_cast<unsigned>(instruction.operands.size() / 2));
    for (size_t i = 0; i + 1 < instruction.operands.size(); i += 2) {
        Value* value = body.value(instruction, i);
        if (value->getType() != type)
            return body.refuse(instruction, "operand " + std::to_string(i) + " is not of the result's type");
        phi->addIncoming(value, body.block(instruction.operand(i + 1)));
    }
    body.define(instruction, phi);
}

void branch_on_condition(Body& body, const Instruction& instruction) {
    Value* condition = body.value(instruction, 0);
    if (!condition->getType()->isIntegerTy(1))
        return body.refuse(instruction, "the condition is not a truth value");
    llvm::BranchInst* branch =
        body.builder().CreateCondBr(condition, body.block(instruction.operand(1)), body.block(instruction.operand(2)));
    if (instruction.operands.size() == 5 && (instruction.operand(3) != 0 || instruction.operand(4) != 0))
        branch->setMetadata(
            llvm::LLVMContext::MD_prof,
            llvm::MDBuilder(branch->getContext()).createBranchWeights(instruction.operand(3), instruction.operand(4)));
}

// OpSwitch. A literal is as wide as the selector, but at least one word.
void branch_on_value(Body& body, const Instruction& instruction) {
    Value* selector = body.value(instruction, 0);
    auto* type = llvm::dyn_cast<llvm::IntegerType>(selector->getType());
    if (type == nullptr)
        return body.refuse(instruction, "the selector is not an integer");
    const size_t literal_words = type->getBitWidth() > 32 ? 2 : 1;
    llvm::SwitchInst* branch =
        body.builder().CreateSwitch(selector, body.block(instruction.operand(1)),
                                    static_cast<unsigned>(instruction.operands.size() / (literal_words + 1)));
    for (size_t i = 2; i + literal_words < instruction.operands.size(); i += literal_words + 1) {
        uint64_t literal = instruction.operand(i);
        if (literal_words == 2)
            literal |= uint64_t{instruction.operand(i + 1)} << 32;
        auto* value =
            llvm::ConstantInt::get(body.function().getContext(), llvm::APInt(64, literal).trunc(type->getBitWidth()));
        branch->addCase(value, body.block(instruction.operand(i + literal_words)));
    }
}

void call_function(Body& body, const Instruction& instruction) {
    auto* callee = llvm::dyn_cast_or_null<llvm::Function>(body.translation().known_value(instruction.operand(0)));
    if (callee == nullptr || callee->arg_size() + 1 != instruction.operands.size())
        return body.refuse(instruction, "this is no function of so many parameters");
    llvm::SmallVector<Value*, 8> arguments;
    for (size_t i = 1; i < instruction.operands.size(); ++i) {
        arguments.push_back(body.value(instruction, i));
        if (arguments.back()->getType() != callee->getArg(static_cast<unsigned>(i - 1))->getType())
            return body.refuse(instruction, "argument " + std::to_string(i - 1) + " is not of the parameter's type");
    }
    llvm::CallInst* call = body.builder().CreateCall(callee, arguments);
    call->setCallingConv(callee->getCallingConv());
    call->setAttributes(callee->getAttributes());
    if (!callee->isIntrinsic())
        call->addFnAttr(llvm::Attribute::Convergent);
    if (callee->getReturnType()->isVoidTy())
        return;
    body.define(instruction, call);
}

void return_value(Body& body, const Instruction& instruction) {
    Value* value = body.value(instruction, 0);
    if (value->getType() != body.function().getReturnType())
        return body.refuse(instruction, "the value is not of the function's type");
    body.builder().CreateRet(value);
}

void expect(Body& body, const Instruction& instruction) {
    Value* value = body.value(instruction, 0);
    Value* expected = body.value(instruction, 1);
    // LLVM's intrinsic knows numbers only; vectors lose the hint.
    if (value->getType()->isIntegerTy() && value->getType() == expected->getType())
        value = body.builder().CreateIntrinsic(llvm::Intrinsic::expect, {value->getType()}, {value, expected});
    body.define(instruction, value);
}

void assume(Body& body, const Instruction& instruction) {
    Value* condition = body.value(instruction, 0);
    if (!condition->getType()->isIntegerTy(1))
        return body.refuse(instruction, "the condition is not a truth value");
    body.builder().CreateIntrinsic(llvm::Intrinsic::assume, {}, {condition});
}

} // namespace

bool emit_control(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    switch (instruction.opcode) {
    case spv::OpLabel: begin_block(body, instruction); return true;
    case spv::OpPhi: join(body, instruction); return true;
    case spv::OpBranch: builder.CreateBr(body.block(instruction.operand(0))); return true;
    case spv::OpBranchConditional: branch_on_condition(body, instruction); return true;
    case spv::OpSwitch: branch_on_value(body, instruction); return true;
    case spv::OpUnreachable: builder.CreateUnreachable(); return true;
    case spv::OpReturn: builder.CreateRetVoid(); return true;
    case spv::OpReturnValue: return_value(body, instruction); return true;
    case spv::OpFunctionCall: call_function(body, instruction); return true;
    case spv::OpExpectKHR: expect(body, instruction); return true;
    case spv::OpAssumeTrueKHR: assume(body, instruction); return true;
    default: return false;
    }
}

} // namespace polder::compiler::spirv
