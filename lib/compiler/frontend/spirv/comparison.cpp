// Relations and logic (SPIR-V specification 3.49.15).
#include "body.h"

#include <algorithm>
#include <array>
#include <llvm/IR/Intrinsics.h>

namespace polder::compiler::spirv {
namespace {

using llvm::CmpInst;
using llvm::Value;

struct Comparison {
    spv::Op opcode;
    CmpInst::Predicate predicate;
};

constexpr std::array comparisons{
    Comparison{spv::OpIEqual, CmpInst::ICMP_EQ},
    Comparison{spv::OpINotEqual, CmpInst::ICMP_NE},
    Comparison{spv::OpUGreaterThan, CmpInst::ICMP_UGT},
    Comparison{spv::OpSGreaterThan, CmpInst::ICMP_SGT},
    Comparison{spv::OpUGreaterThanEqual, CmpInst::ICMP_UGE},
    Comparison{spv::OpSGreaterThanEqual, CmpInst::ICMP_SGE},
    Comparison{spv::OpULessThan, CmpInst::ICMP_ULT},
    Comparison{spv::OpSLessThan, CmpInst::ICMP_SLT},
    Comparison{spv::OpULessThanEqual, CmpInst::ICMP_ULE},
    Comparison{spv::OpSLessThanEqual, CmpInst::ICMP_SLE},
    Comparison{spv::OpPtrEqual, CmpInst::ICMP_EQ},
    Comparison{spv::OpPtrNotEqual, CmpInst::ICMP_NE},
    Comparison{spv::OpLogicalEqual, CmpInst::ICMP_EQ},
    Comparison{spv::OpLogicalNotEqual, CmpInst::ICMP_NE},
    Comparison{spv::OpFOrdEqual, CmpInst::FCMP_OEQ},
    Comparison{spv::OpFUnordEqual, CmpInst::FCMP_UEQ},
    Comparison{spv::OpFOrdNotEqual, CmpInst::FCMP_ONE},
    Comparison{spv::OpFUnordNotEqual, CmpInst::FCMP_UNE},
    Comparison{spv::OpFOrdLessThan, CmpInst::FCMP_OLT},
    Comparison{spv::OpFUnordLessThan, CmpInst::FCMP_ULT},
    Comparison{spv::OpFOrdGreaterThan, CmpInst::FCMP_OGT},
    Comparison{spv::OpFUnordGreaterThan, CmpInst::FCMP_UGT},
    Comparison{spv::OpFOrdLessThanEqual, CmpInst::FCMP_OLE},
    Comparison{spv::OpFUnordLessThanEqual, CmpInst::FCMP_ULE},
    Comparison{spv::OpFOrdGreaterThanEqual, CmpInst::FCMP_OGE},
    Comparison{spv::OpFUnordGreaterThanEqual, CmpInst::FCMP_UGE},
    Comparison{spv::OpLessOrGreater, CmpInst::FCMP_ONE},
    Comparison{spv::OpOrdered, CmpInst::FCMP_ORD},
    Comparison{spv::OpUnordered, CmpInst::FCMP_UNO},
};

Value* compare(Body& body, const Instruction& instruction, CmpInst::Predicate predicate) {
    Value* x = body.value(instruction, 0);
    Value* y = body.value(instruction, 1);
    const bool fits = CmpInst::isFPPredicate(predicate)
                          ? x->getType()->isFPOrFPVectorTy()
                          : x->getType()->isIntOrIntVectorTy() || x->getType()->isPtrOrPtrVectorTy();
    if (!fits || x->getType() != y->getType()) {
        body.refuse(instruction, "the operands cannot be compared");
        return llvm::PoisonValue::get(body.result_type(instruction));
    }
    return body.builder().CreateCmp(predicate, x, y);
}

Value* is_of_class(Body& body, const Instruction& instruction, llvm::FPClassTest test) {
    Value* x = body.value(instruction, 0);
    if (!x->getType()->isFPOrFPVectorTy()) {
        body.refuse(instruction, "the operand is not a floating-point number");
        return llvm::PoisonValue::get(body.result_type(instruction));
    }
    return body.builder().createIsFPClass(x, test);
}

Value* sign_bit(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    Value* x = body.value(instruction, 0);
    llvm::Type* type = x->getType()->isFPOrFPVectorTy() ? x->getType() : body.builder().getFloatTy();
    llvm::Type* bits = type->getWithNewType(builder.getIntNTy(type->getScalarSizeInBits()));
    return builder.CreateICmpSLT(builder.CreateBitCast(x, bits), llvm::Constant::getNullValue(bits));
}

Value* select(Body& body, const Instruction& instruction) {
    Value* condition = body.value(instruction, 0);
    Value* x = body.value(instruction, 1);
    Value* y = body.value(instruction, 2);
    if (llvm::SelectInst::areInvalidOperands(condition, x, y) != nullptr) {
        body.refuse(instruction, "the operands do not fit each other");
        return x;
    }
    return body.builder().CreateSelect(condition, x, y);
}

// LLVM's SPIR-V backend also emits OpAny and OpAll of integers and of vectors of integers, as OpenCL C's any and all take them: a negative
// element is true.
Value* reduce(Body& body, const Instruction& instruction) {
    Value* vector = body.value(instruction, 0);
    if (!vector->getType()->isIntOrIntVectorTy() || vector->getType()->isIntegerTy(1)) {
        body.refuse(instruction, "the operand is not a vector of truth values");
        return vector;
    }
    if (!vector->getType()->isIntOrIntVectorTy(1))
        vector = body.builder().CreateICmpSLT(vector, llvm::Constant::getNullValue(vector->getType()));
    if (!vector->getType()->isVectorTy())
        return vector;
    return instruction.opcode == spv::OpAny ? body.builder().CreateOrReduce(vector)
                                            : body.builder().CreateAndReduce(vector);
}

Value* other_comparison(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    switch (instruction.opcode) {
    case spv::OpLogicalAnd: return builder.CreateAnd(body.value(instruction, 0), body.value(instruction, 1));
    case spv::OpLogicalOr: return builder.CreateOr(body.value(instruction, 0), body.value(instruction, 1));
    case spv::OpLogicalNot: return builder.CreateNot(body.value(instruction, 0));
    case spv::OpSelect: return select(body, instruction);
    case spv::OpAny:
    case spv::OpAll: return reduce(body, instruction);
    case spv::OpIsNan: return is_of_class(body, instruction, llvm::fcNan);
    case spv::OpIsInf: return is_of_class(body, instruction, llvm::fcInf);
    case spv::OpIsFinite: return is_of_class(body, instruction, llvm::fcFinite);
    case spv::OpIsNormal: return is_of_class(body, instruction, llvm::fcNormal);
    case spv::OpSignBitSet: return sign_bit(body, instruction);
    default: return nullptr;
    }
}

}  // namespace

bool emit_comparison(Body& body, const Instruction& instruction) {
    const auto found = std::find_if(comparisons.begin(), comparisons.end(),
                                    [&](const Comparison& each) { return each.opcode == instruction.opcode; });
    Value* value =
        found == comparisons.end() ? other_comparison(body, instruction) : compare(body, instruction, found->predicate);
    if (value == nullptr)
        return false;
    body.define(instruction, value);
    return true;
}

}  // namespace polder::compiler::spirv
