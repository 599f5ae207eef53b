// Arithmetic (SPIR-V specification 3.49.13), except dot products of integers.
#include "body.h"

#include <algorithm>
#include <array>
#include <llvm/IR/Intrinsics.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;
using BinaryOps = llvm::Instruction::BinaryOps;

struct BinaryOperation {
    spv::Op opcode;
    BinaryOps llvm;
};

constexpr std::array binary_operations{
    BinaryOperation{spv::OpIAdd, BinaryOps::Add},  BinaryOperation{spv::OpISub, BinaryOps::Sub},
    BinaryOperation{spv::OpIMul, BinaryOps::Mul},  BinaryOperation{spv::OpUDiv, BinaryOps::UDiv},
    BinaryOperation{spv::OpSDiv, BinaryOps::SDiv}, BinaryOperation{spv::OpUMod, BinaryOps::URem},
    BinaryOperation{spv::OpSRem, BinaryOps::SRem}, BinaryOperation{spv::OpFAdd, BinaryOps::FAdd},
    BinaryOperation{spv::OpFSub, BinaryOps::FSub}, BinaryOperation{spv::OpFMul, BinaryOps::FMul},
    BinaryOperation{spv::OpFDiv, BinaryOps::FDiv},
};

llvm::FastMathFlags fast_math_flags(Body& body, const Instruction& instruction) {
    llvm::FastMathFlags flags;
    flags.setAllowContract(body.contraction() == Body::Contraction::allowed &&
                           !body.annotations().has(instruction.result, spv::DecorationNoContraction));
    const auto decoration = body.annotations().decoration(instruction.result, spv::DecorationFPFastMathMode);
    const uint32_t mode = decoration ? decoration->operand(0) : 0;
    if ((mode & spv::FPFastMathModeFastMask) != 0)
        flags.setFast();
    if ((mode & spv::FPFastMathModeNotNaNMask) != 0)
        flags.setNoNaNs();
    if ((mode & spv::FPFastMathModeNotInfMask) != 0)
        flags.setNoInfs();
    if ((mode & spv::FPFastMathModeNSZMask) != 0)
        flags.setNoSignedZeros();
    if ((mode & spv::FPFastMathModeAllowRecipMask) != 0)
        flags.setAllowReciprocal();
    if ((mode & spv::FPFastMathModeAllowContractFastINTELMask) != 0)
        flags.setAllowContract();
    if ((mode & spv::FPFastMathModeAllowReassocINTELMask) != 0)
        flags.setAllowReassoc();
    return flags;
}

// The decorations of the instruction become flags of the operation.
Value* with_flags(Body& body, const Instruction& instruction, Value* value) {
    auto* operation = llvm::dyn_cast<llvm::Instruction>(value);
    if (operation == nullptr)
        return value;
    if (llvm::isa<llvm::FPMathOperator>(operation))
        operation->setFastMathFlags(fast_math_flags(body, instruction));
    if (llvm::isa<llvm::OverflowingBinaryOperator>(operation)) {
        operation->setHasNoSignedWrap(body.annotations().has(instruction.result, spv::DecorationNoSignedWrap));
        operation->setHasNoUnsignedWrap(body.annotations().has(instruction.result, spv::DecorationNoUnsignedWrap));
    }
    return value;
}

// The sign of the result is that of the divisor, not of the dividend.
Value* signed_modulo(Builder& builder, Value* x, Value* y) {
    Value* remainder = builder.CreateSRem(x, y);
    Value* zero = llvm::Constant::getNullValue(x->getType());
    Value* is_off = builder.CreateAnd(builder.CreateICmpNE(remainder, zero),
                                      builder.CreateICmpSLT(builder.CreateXor(remainder, y), zero));
    return builder.CreateSelect(is_off, builder.CreateAdd(remainder, y), remainder);
}

// Calls the library's fmod, which exists for every width and vector, instead of using LLVM's frem.
Value* float_remainder(Body& body, const Instruction& instruction) {
    const std::string name = MangledName("fmod", body.types()).add(instruction.type).add(instruction.type).text();
    return body.call(name, body.result_type(instruction), {body.value(instruction, 0), body.value(instruction, 1)},
                     Effect::none);
}

Value* float_modulo(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    Value* remainder = float_remainder(body, instruction);
    Value* y = body.value(instruction, 1);
    Value* zero = llvm::Constant::getNullValue(remainder->getType());
    Value* signs_differ = builder.CreateXor(builder.CreateFCmpOLT(remainder, zero), builder.CreateFCmpOLT(y, zero));
    Value* is_off = builder.CreateAnd(builder.CreateFCmpONE(remainder, zero), signs_differ);
    return builder.CreateSelect(is_off, builder.CreateFAdd(remainder, y), remainder);
}

Value* vector_times_scalar(Body& body, const Instruction& instruction) {
    Value* vector = body.value(instruction, 0);
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(vector->getType());
    if (type == nullptr || body.value(instruction, 1)->getType() != type->getElementType()) {
        body.refuse(instruction, "the operands are no vector and number of one type");
        return vector;
    }
    Builder& builder = body.builder();
    return builder.CreateFMul(vector, builder.CreateVectorSplat(type->getNumElements(), body.value(instruction, 1)));
}

Value* dot(Body& body, const Instruction& instruction) {
    const uint32_t type = body.type_of(instruction, 0);
    return body.call(MangledName("dot", body.types()).add(type).add(type).text(), body.result_type(instruction),
                     {body.value(instruction, 0), body.value(instruction, 1)}, Effect::none);
}

Value* pair(Body& body, const Instruction& instruction, Value* low, Value* high) {
    auto* type = llvm::dyn_cast<llvm::StructType>(body.result_type(instruction));
    if (type == nullptr || type->getNumElements() != 2 || type->getElementType(0) != low->getType() ||
        type->getElementType(1) != high->getType()) {
        body.refuse(instruction, "the result is not a structure of two such numbers");
        return low;
    }
    Value* both = llvm::PoisonValue::get(type);
    both = body.builder().CreateInsertValue(both, low, {0});
    return body.builder().CreateInsertValue(both, high, {1});
}

// The result and the carry, or the borrow, as numbers.
Value* with_carry(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    Value* x = body.value(instruction, 0);
    Value* y = body.value(instruction, 1);
    const bool is_sum = instruction.opcode == spv::OpIAddCarry;
    Value* result = is_sum ? builder.CreateAdd(x, y) : builder.CreateSub(x, y);
    Value* carry = is_sum ? builder.CreateICmpULT(result, x) : builder.CreateICmpULT(x, y);
    return pair(body, instruction, result, builder.CreateZExt(carry, x->getType()));
}

Value* extended_product(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    Value* x = body.value(instruction, 0);
    Value* y = body.value(instruction, 1);
    const unsigned width = x->getType()->getScalarSizeInBits();
    llvm::Type* wide = x->getType()->getExtendedType();
    const bool is_signed = instruction.opcode == spv::OpSMulExtended;
    const auto extend = [&](Value* value) {
        return is_signed ? builder.CreateSExt(value, wide) : builder.CreateZExt(value, wide);
    };
    Value* product = builder.CreateMul(extend(x), extend(y));
    Value* high = builder.CreateLShr(product, llvm::ConstantInt::get(wide, width));
    return pair(body, instruction, builder.CreateTrunc(product, x->getType()), builder.CreateTrunc(high, x->getType()));
}

// The value for an opcode that the table does not have; null when the opcode is not of this family.
Value* other_arithmetic(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    switch (instruction.opcode) {
    case spv::OpSNegate: return builder.CreateNeg(body.value(instruction, 0));
    case spv::OpFNegate: return builder.CreateFNeg(body.value(instruction, 0));
    case spv::OpSMod: return signed_modulo(builder, body.value(instruction, 0), body.value(instruction, 1));
    case spv::OpFRem: return float_remainder(body, instruction);
    case spv::OpFMod: return float_modulo(body, instruction);
    case spv::OpVectorTimesScalar: return vector_times_scalar(body, instruction);
    case spv::OpDot: return dot(body, instruction);
    case spv::OpIAddCarry:
    case spv::OpISubBorrow: return with_carry(body, instruction);
    case spv::OpUMulExtended:
    case spv::OpSMulExtended:
        if (body.value(instruction, 0)->getType()->isIntOrIntVectorTy())
            return extended_product(body, instruction);
        return nullptr;
    default: return nullptr;
    }
}

} // namespace

bool emit_arithmetic(Body& body, const Instruction& instruction) {
    const auto found = std::find_if(binary_operations.begin(), binary_operations.end(),
                                    [&](const BinaryOperation& each) { return each.opcode == instruction.opcode; });
    Value* value =
        found == binary_operations.end()
            ? other_arithmetic(body, instruction)
            : body.builder().CreateBinOp(found->llvm, body.value(instruction, 0), body.value(instruction, 1));
    if (value == nullptr)
        return false;
    body.define(instruction, with_flags(body, instruction, value));
    return true;
}

} // namespace polder::compiler::spirv
