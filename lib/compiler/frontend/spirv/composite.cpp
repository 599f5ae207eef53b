// Vectors, arrays and structures as values (SPIR-V specification 3.49.12).
#include "body.h"

#include <llvm/IR/Constants.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;
using Path = std::span<const uint32_t>;

// The element that `index` means within `type`; null when there is none.
llvm::Type* element_type(llvm::Type* type, uint32_t index) {
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
        return index < vector->getNumElements() ? vector->getElementType() : nullptr;
    if (auto* array = llvm::dyn_cast<llvm::ArrayType>(type))
        return index < array->getNumElements() ? array->getElementType() : nullptr;
    auto* structure = llvm::dyn_cast<llvm::StructType>(type);
    return structure != nullptr && index < structure->getNumElements() ? structure->getElementType(index) : nullptr;
}

Value* extract_one(Builder& builder, Value* composite, uint32_t index) {
    if (composite->getType()->isVectorTy())
        return builder.CreateExtractElement(composite, index);
    return builder.CreateExtractValue(composite, {index});
}

Value* insert_one(Builder& builder, Value* composite, Value* element, uint32_t index) {
    if (composite->getType()->isVectorTy())
        return builder.CreateInsertElement(composite, element, index);
    return builder.CreateInsertValue(composite, element, {index});
}

Value* extract(Body& body, const Instruction& instruction) {
    Value* value = body.value(instruction, 0);
    for (const uint32_t index : instruction.operands.subspan(1)) {
        if (element_type(value->getType(), index) == nullptr) {
            body.refuse(instruction, "there is no element " + std::to_string(index));
            return value;
        }
        value = extract_one(body.builder(), value, index);
    }
    return value;
}

// Null where the path does not exist in the composite, or leads to another type.
Value* insert_at(Builder& builder, Value* composite, Value* element, Path path) {
    if (path.empty())
        return composite->getType() == element->getType() ? element : nullptr;
    if (element_type(composite->getType(), path[0]) == nullptr)
        return nullptr;
    Value* part = insert_at(builder, extract_one(builder, composite, path[0]), element, path.subspan(1));
    return part == nullptr ? nullptr : insert_one(builder, composite, part, path[0]);
}

Value* insert(Body& body, const Instruction& instruction) {
    Value* composite = body.value(instruction, 1);
    Value* changed = insert_at(body.builder(), composite, body.value(instruction, 0),
                               instruction.operands.subspan(std::min<size_t>(2, instruction.operands.size())));
    if (changed == nullptr) {
        body.refuse(instruction, "the indexes lead to no element of the object's type");
        return composite;
    }
    return changed;
}

// OpCompositeConstruct. The constituents of a vector may be vectors, too.
Value* construct(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    llvm::Type* type = body.result_type(instruction);
    Value* whole = llvm::PoisonValue::get(type);
    uint32_t at = 0;
    const auto put = [&](Value* element) {
        if (element_type(type, at) != element->getType())
            body.refuse(instruction, "constituent " + std::to_string(at) + " is not of the element's type");
        else
            whole = insert_one(builder, whole, element, at++);
    };
    for (size_t i = 0; i < instruction.operands.size() && !body.translation().failed(); ++i) {
        Value* part = body.value(instruction, i);
        auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(part->getType());
        if (vector == nullptr || !type->isVectorTy())
            put(part);
        else
            for (uint32_t j = 0; j < vector->getNumElements() && !body.translation().failed(); ++j)
                put(builder.CreateExtractElement(part, j));
    }
    if (element_type(type, at) != nullptr)
        body.refuse(instruction, "there are too few constituents");
    return whole;
}

Value* widened(Builder& builder, Value* vector, unsigned width) {
    const unsigned have = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
    llvm::SmallVector<int, 16> mask;
    for (unsigned i = 0; i < width; ++i)
        mask.push_back(i < have ? static_cast<int>(i) : -1);
    return builder.CreateShuffleVector(vector, mask);
}

Value* shuffle(Body& body, const Instruction& instruction) {
    constexpr uint32_t undefined = 0xffffffff;
    Value* x = body.value(instruction, 0);
    Value* y = body.value(instruction, 1);
    auto* x_type = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
    auto* y_type = llvm::dyn_cast<llvm::FixedVectorType>(y->getType());
    if (x_type == nullptr || y_type == nullptr || x_type->getElementType() != y_type->getElementType()) {
        body.refuse(instruction, "the operands are not two vectors of one element type");
        return x;
    }
    const unsigned x_width = x_type->getNumElements();
    const unsigned y_width = y_type->getNumElements();
    const unsigned width = std::max(x_width, y_width);
    llvm::SmallVector<int, 16> mask;
    for (const uint32_t index : instruction.operands.subspan(2)) {
        if (index != undefined && index >= x_width + y_width) {
            body.refuse(instruction, "there is no component " + std::to_string(index));
            return x;
        }
        mask.push_back(index == undefined ? -1 : static_cast<int>(index < x_width ? index : index - x_width + width));
    }
    Builder& builder = body.builder();
    Value* result = builder.CreateShuffleVector(x_width == width ? x : widened(builder, x, width),
                                                y_width == width ? y : widened(builder, y, width), mask);
    // Undefined components are 0: in Clang's modules, the fourth component of the size of an image of three dimensions is undefined, which
    // is 0 in OpenCL C.
    for (unsigned i = 0; i < mask.size(); ++i)
        if (mask[i] < 0)
            result = builder.CreateInsertElement(result, llvm::Constant::getNullValue(x_type->getElementType()), i);
    return result;
}

bool is_vector_with(Body& body, const Instruction& instruction, size_t vector, size_t index) {
    const bool fits = body.value(instruction, vector)->getType()->isVectorTy() &&
                      body.value(instruction, index)->getType()->isIntegerTy();
    if (!fits)
        body.refuse(instruction, "the operands are not a vector and an index");
    return fits;
}

Value* extract_dynamically(Body& body, const Instruction& instruction) {
    Value* vector = body.value(instruction, 0);
    if (!is_vector_with(body, instruction, 0, 1))
        return vector;
    return body.builder().CreateExtractElement(vector, body.value(instruction, 1));
}

Value* insert_dynamically(Body& body, const Instruction& instruction) {
    Value* vector = body.value(instruction, 0);
    if (!is_vector_with(body, instruction, 0, 2))
        return vector;
    return body.builder().CreateInsertElement(vector, body.value(instruction, 1), body.value(instruction, 2));
}

// OpCopyLogical: from one structure type to another with the same members.
Value* copy_logically(Builder& builder, Value* from, llvm::Type* type) {
    if (from->getType() == type)
        return from;
    Value* whole = llvm::PoisonValue::get(type);
    for (uint32_t i = 0; element_type(type, i) != nullptr; ++i) {
        if (element_type(from->getType(), i) == nullptr || i > 4096)
            return nullptr;
        Value* part = copy_logically(builder, extract_one(builder, from, i), element_type(type, i));
        if (part == nullptr)
            return nullptr;
        whole = insert_one(builder, whole, part, i);
    }
    return whole;
}

Value* composite_for(Body& body, const Instruction& instruction) {
    switch (instruction.opcode) {
    case spv::OpCompositeExtract: return extract(body, instruction);
    case spv::OpCompositeInsert: return insert(body, instruction);
    case spv::OpCompositeConstruct: return construct(body, instruction);
    case spv::OpVectorShuffle: return shuffle(body, instruction);
    case spv::OpVectorExtractDynamic: return extract_dynamically(body, instruction);
    case spv::OpVectorInsertDynamic: return insert_dynamically(body, instruction);
    case spv::OpCopyObject: return body.value(instruction, 0);
    case spv::OpCopyLogical:
        return copy_logically(body.builder(), body.value(instruction, 0), body.result_type(instruction));
    case spv::OpUndef: return llvm::UndefValue::get(body.result_type(instruction));
    default: return nullptr;
    }
}

}  // namespace

bool emit_composite(Body& body, const Instruction& instruction) {
    Value* value = composite_for(body, instruction);
    if (value == nullptr)
        return false;
    body.define(instruction, value);
    return true;
}

}  // namespace polder::compiler::spirv
