// Conversions (SPIR-V specification 3.49.11).
//
// Plain conversions are the LLVM casts that Clang makes of C's casts. Those with a rounding mode or saturation are calls of OpenCL C's
// convert_… functions.
#include "body.h"

#include <algorithm>
#include <array>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;
using CastOps = llvm::Instruction::CastOps;

struct Conversion {
    spv::Op opcode;
    CastOps widening;  // also where the direction does not matter
    CastOps narrowing;
    Sign from, to;
    enum class Saturation : uint8_t { as_decorated, always } saturation;
};
using enum Conversion::Saturation;
using signs::s, signs::u;

constexpr std::array conversions{
    Conversion{spv::OpConvertFToU, CastOps::FPToUI, CastOps::FPToUI, s, u, as_decorated},
    Conversion{spv::OpConvertFToS, CastOps::FPToSI, CastOps::FPToSI, s, s, as_decorated},
    Conversion{spv::OpConvertSToF, CastOps::SIToFP, CastOps::SIToFP, s, s, as_decorated},
    Conversion{spv::OpConvertUToF, CastOps::UIToFP, CastOps::UIToFP, u, s, as_decorated},
    Conversion{spv::OpUConvert, CastOps::ZExt, CastOps::Trunc, u, u, as_decorated},
    Conversion{spv::OpSConvert, CastOps::SExt, CastOps::Trunc, s, s, as_decorated},
    Conversion{spv::OpFConvert, CastOps::FPExt, CastOps::FPTrunc, s, s, as_decorated},
    Conversion{spv::OpSatConvertSToU, CastOps::Trunc, CastOps::Trunc, s, u, always},
    Conversion{spv::OpSatConvertUToS, CastOps::Trunc, CastOps::Trunc, u, s, always},
};

std::string rounding_suffix(Body& body, const Instruction& instruction) {
    const auto mode = body.annotations().decoration(instruction.result, spv::DecorationFPRoundingMode);
    if (!mode)
        return {};
    switch (mode->operand(0)) {
    case spv::FPRoundingModeRTE: return "_rte";
    case spv::FPRoundingModeRTZ: return "_rtz";
    case spv::FPRoundingModeRTP: return "_rtp";
    case spv::FPRoundingModeRTN: return "_rtn";
    default: return {};
    }
}

Value* convert(Body& body, const Instruction& instruction, const Conversion& conversion) {
    const bool saturates = conversion.saturation == always ||
                           body.annotations().has(instruction.result, spv::DecorationSaturatedConversion);
    const std::string suffix = (saturates ? "_sat" : "") + rounding_suffix(body, instruction);
    Value* from = body.value(instruction, 0);
    llvm::Type* type = body.result_type(instruction);
    if (!suffix.empty()) {
        const std::string name = "convert_" + opencl_name(body.types(), instruction.type, conversion.to) + suffix;
        return body.call(MangledName(name, body.types()).add(body.type_of(instruction, 0), conversion.from).text(),
                         type, {from}, Effect::none);
    }
    if (from->getType() == type)
        return from;
    const bool widens = from->getType()->getScalarSizeInBits() < type->getScalarSizeInBits();
    const CastOps operation = widens ? conversion.widening : conversion.narrowing;
    if (!llvm::CastInst::castIsValid(operation, from->getType(), type)) {
        body.refuse(instruction, "there is no such conversion");
        return from;
    }
    return body.builder().CreateCast(operation, from, type);
}

// Between pointers and numbers of the same size, or of the same kind.
Value* bitcast(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    Value* from = body.value(instruction, 0);
    llvm::Type* type = body.result_type(instruction);
    if (from->getType() == type)
        return from;
    const bool was_pointer = from->getType()->isPtrOrPtrVectorTy();
    const bool is_pointer = type->isPtrOrPtrVectorTy();
    if (was_pointer && is_pointer)
        return builder.CreateAddrSpaceCast(from, type);
    if (was_pointer)
        return builder.CreateBitCast(
            builder.CreatePtrToInt(from, from->getType()->getWithNewType(builder.getInt64Ty())), type);
    if (is_pointer)
        return builder.CreateIntToPtr(builder.CreateBitCast(from, type->getWithNewType(builder.getInt64Ty())), type);
    if (!llvm::CastInst::castIsValid(CastOps::BitCast, from->getType(), type)) {
        body.refuse(instruction, "the types have different sizes");
        return from;
    }
    return builder.CreateBitCast(from, type);
}

Value* cast_pointer(Body& body, const Instruction& instruction) {
    Value* from = body.value(instruction, 0);
    llvm::Type* type = body.result_type(instruction);
    if (!from->getType()->isPtrOrPtrVectorTy() || !type->isPtrOrPtrVectorTy() ||
        from->getType()->isVectorTy() != type->isVectorTy()) {
        body.refuse(instruction, "the operand and the result must be pointers");
        return from;
    }
    return from->getType() == type ? from : body.builder().CreateAddrSpaceCast(from, type);
}

// OpGenericCastToPtrExplicit: calls the functions that Clang calls for to_global, to_local and to_private.
Value* cast_explicitly(Body& body, const Instruction& instruction) {
    Value* from = body.value(instruction, 0);
    llvm::Type* type = body.result_type(instruction);
    if (!from->getType()->isPointerTy() || !type->isPointerTy()) {
        body.refuse(instruction, "the operand and the result must be pointers");
        return from;
    }
    switch (type->getPointerAddressSpace()) {
    case 1: return body.call("__to_global", type, {from}, Effect::any);
    case 3: return body.call("__to_local", type, {from}, Effect::any);
    default: return body.call("__to_private", type, {from}, Effect::any);
    }
}

// OpenCL C's flags, which are bits 8 and 9 of SPIR-V's memory semantics.
Value* memory_semantics(Body& body, const Instruction& instruction) {
    Value* flags =
        body.call(MangledName("get_fence", body.types()).add_void_pointer(body.type_of(instruction, 0)).text(),
                  body.builder().getInt32Ty(), {body.value(instruction, 0)}, Effect::any);
    return body.builder().CreateShl(flags, 8);
}

Value* other_conversion(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    switch (instruction.opcode) {
    case spv::OpBitcast: return bitcast(body, instruction);
    case spv::OpPtrCastToGeneric:
    case spv::OpGenericCastToPtr: return cast_pointer(body, instruction);
    case spv::OpGenericCastToPtrExplicit: return cast_explicitly(body, instruction);
    case spv::OpGenericPtrMemSemantics: return memory_semantics(body, instruction);
    case spv::OpConvertPtrToU: {
        Value* from = body.value(instruction, 0);
        if (!from->getType()->isPointerTy())
            return nullptr;
        return builder.CreateZExtOrTrunc(builder.CreatePtrToInt(from, builder.getInt64Ty()),
                                         body.result_type(instruction));
    }
    case spv::OpConvertUToPtr: {
        Value* from = body.value(instruction, 0);
        if (!from->getType()->isIntegerTy() || !body.result_type(instruction)->isPointerTy())
            return nullptr;
        return builder.CreateIntToPtr(builder.CreateZExtOrTrunc(from, builder.getInt64Ty()),
                                      body.result_type(instruction));
    }
    default: return nullptr;
    }
}

}  // namespace

bool emit_conversion(Body& body, const Instruction& instruction) {
    const auto found = std::find_if(conversions.begin(), conversions.end(),
                                    [&](const Conversion& each) { return each.opcode == instruction.opcode; });
    Value* value =
        found == conversions.end() ? other_conversion(body, instruction) : convert(body, instruction, *found);
    if (value == nullptr)
        return false;
    body.define(instruction, value);
    return true;
}

}  // namespace polder::compiler::spirv
