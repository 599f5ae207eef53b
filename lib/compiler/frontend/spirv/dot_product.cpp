// Dot products of integers (SPV_KHR_integer_dot_product): of vectors, or of four 8-bit integers packed in 32 bits.
//
// Computed in twice the bits of the result, at least 64, so that nothing overflows before the result is truncated or saturated.
#include "body.h"

#include <llvm/IR/Intrinsics.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;

struct Signs {
    bool first, second;
};

Signs signs_of(spv::Op opcode) {
    const bool is_unsigned = opcode == spv::OpUDot || opcode == spv::OpUDotAccSat;
    const bool is_mixed = opcode == spv::OpSUDot || opcode == spv::OpSUDotAccSat;
    return {!is_unsigned, !is_unsigned && !is_mixed};
}

bool is_dot_product(spv::Op opcode) { return opcode >= spv::OpSDot && opcode <= spv::OpSUDotAccSat; }
bool accumulates(spv::Op opcode) { return opcode >= spv::OpSDotAccSat && opcode <= spv::OpSUDotAccSat; }

// The operand as a vector: unpacked where it is packed, unchanged where it is a vector; null otherwise.
Value* vector_of(Builder& builder, Value* operand) {
    if (operand->getType()->isIntegerTy(32))
        return builder.CreateBitCast(operand, llvm::FixedVectorType::get(builder.getInt8Ty(), 4));
    const bool is_vector = operand->getType()->isVectorTy() && operand->getType()->isIntOrIntVectorTy();
    return is_vector ? operand : nullptr;
}

Value* extend(Builder& builder, Value* value, llvm::Type* wide, bool is_signed) {
    llvm::Type* type = value->getType()->getWithNewType(wide);
    return is_signed ? builder.CreateSExt(value, type) : builder.CreateZExt(value, type);
}

Value* saturate(Builder& builder, Value* wide, llvm::IntegerType& type, bool is_signed) {
    const unsigned bits = wide->getType()->getIntegerBitWidth();
    const unsigned width = type.getBitWidth();
    const auto limit = [&](const llvm::APInt& value) { return llvm::ConstantInt::get(wide->getType(), value); };
    if (!is_signed)
        return builder.CreateBinaryIntrinsic(llvm::Intrinsic::umin, wide,
                                             limit(llvm::APInt::getMaxValue(width).zext(bits)));
    wide = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, wide,
                                         limit(llvm::APInt::getSignedMaxValue(width).sext(bits)));
    return builder.CreateBinaryIntrinsic(llvm::Intrinsic::smax, wide,
                                         limit(llvm::APInt::getSignedMinValue(width).sext(bits)));
}

}  // namespace

bool emit_dot_product(Body& body, const Instruction& instruction) {
    if (!is_dot_product(instruction.opcode))
        return false;
    Builder& builder = body.builder();
    Value* x = vector_of(builder, body.value(instruction, 0));
    Value* y = vector_of(builder, body.value(instruction, 1));
    auto* result = llvm::dyn_cast<llvm::IntegerType>(body.result_type(instruction));
    if (x == nullptr || y == nullptr || result == nullptr || x->getType() != y->getType()) {
        body.refuse(instruction, "the operands are not two vectors of integers");
        return true;
    }
    const Signs signs = signs_of(instruction.opcode);
    llvm::Type* wide = builder.getIntNTy(std::max(64u, 2 * result->getBitWidth()));
    Value* sum = builder.CreateAddReduce(
        builder.CreateMul(extend(builder, x, wide, signs.first), extend(builder, y, wide, signs.second)));
    if (accumulates(instruction.opcode)) {
        Value* accumulator = body.value(instruction, 2);
        if (accumulator->getType() != result) {
            body.refuse(instruction, "the accumulator is not of the result's type");
            return true;
        }
        sum = builder.CreateAdd(sum, extend(builder, accumulator, wide, signs.first));
        sum = saturate(builder, sum, *result, signs.first);
    }
    body.define(instruction, builder.CreateTrunc(sum, result));
    return true;
}

}  // namespace polder::compiler::spirv
