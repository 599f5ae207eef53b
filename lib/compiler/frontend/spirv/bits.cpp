// Bits (SPIR-V specification 3.49.14, SPV_KHR_bit_instructions).
#include "body.h"

#include <llvm/IR/Intrinsics.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;

// The shift's amount may have another width than what is shifted.
Value* shift(Body& body, const Instruction& instruction, llvm::Instruction::BinaryOps operation) {
    Value* base = body.value(instruction, 0);
    Value* amount = body.value(instruction, 1);
    if (!base->getType()->isIntOrIntVectorTy() || !amount->getType()->isIntOrIntVectorTy()) {
        body.refuse(instruction, "the operands are not integers");
        return base;
    }
    Value* shifted =
        body.builder().CreateBinOp(operation, base, body.builder().CreateZExtOrTrunc(amount, base->getType()));
    if (auto* made = llvm::dyn_cast<llvm::Instruction>(shifted);
        operation == llvm::Instruction::Shl && made != nullptr) {
        made->setHasNoSignedWrap(body.annotations().has(instruction.result, spv::DecorationNoSignedWrap));
        made->setHasNoUnsignedWrap(body.annotations().has(instruction.result, spv::DecorationNoUnsignedWrap));
    }
    return shifted;
}

Value* unary(Body& body, const Instruction& instruction, llvm::Intrinsic::ID intrinsic) {
    Value* x = body.value(instruction, 0);
    llvm::Type* result = body.result_type(instruction);
    if (!x->getType()->isIntOrIntVectorTy() || !result->isIntOrIntVectorTy()) {
        body.refuse(instruction, "the operand is not an integer");
        return x;
    }
    return body.builder().CreateZExtOrTrunc(body.builder().CreateUnaryIntrinsic(intrinsic, x), result);
}

// The offset and the count are uint in OpenCL C, of any width in SPIR-V.
Value* field(Body& body, const Instruction& instruction, std::string_view name, size_t values, Sign sign) {
    MangledName mangled(name, body.types());
    llvm::SmallVector<Value*, 4> arguments;
    for (size_t i = 0; i < values; ++i) {
        mangled.add(instruction.type, sign);
        arguments.push_back(body.value(instruction, i));
    }
    for (size_t i = values; i < values + 2; ++i) {
        Value* number = body.value(instruction, i);
        if (!number->getType()->isIntegerTy()) {
            body.refuse(instruction, "the offset and the count must be integers");
            return number;
        }
        mangled.add_code("j");
        arguments.push_back(body.builder().CreateZExtOrTrunc(number, body.builder().getInt32Ty()));
    }
    return body.call(mangled.text(), body.result_type(instruction), arguments, Effect::none);
}

Value* bits_for(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    switch (instruction.opcode) {
    case spv::OpShiftLeftLogical: return shift(body, instruction, llvm::Instruction::Shl);
    case spv::OpShiftRightLogical: return shift(body, instruction, llvm::Instruction::LShr);
    case spv::OpShiftRightArithmetic: return shift(body, instruction, llvm::Instruction::AShr);
    case spv::OpBitwiseAnd: return builder.CreateAnd(body.value(instruction, 0), body.value(instruction, 1));
    case spv::OpBitwiseOr: return builder.CreateOr(body.value(instruction, 0), body.value(instruction, 1));
    case spv::OpBitwiseXor: return builder.CreateXor(body.value(instruction, 0), body.value(instruction, 1));
    case spv::OpNot: return builder.CreateNot(body.value(instruction, 0));
    case spv::OpBitReverse: return unary(body, instruction, llvm::Intrinsic::bitreverse);
    case spv::OpBitCount: return unary(body, instruction, llvm::Intrinsic::ctpop);
    case spv::OpBitFieldInsert: return field(body, instruction, "bitfield_insert", 2, Sign::is_signed);
    case spv::OpBitFieldSExtract: return field(body, instruction, "bitfield_extract_signed", 1, Sign::is_signed);
    case spv::OpBitFieldUExtract: return field(body, instruction, "bitfield_extract_unsigned", 1, Sign::is_unsigned);
    default: return nullptr;
    }
}

} // namespace

bool emit_bits(Body& body, const Instruction& instruction) {
    Value* value = bits_for(body, instruction);
    if (value == nullptr)
        return false;
    body.define(instruction, value);
    return true;
}

} // namespace polder::compiler::spirv
