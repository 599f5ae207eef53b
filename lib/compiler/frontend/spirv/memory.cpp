// Memory and pointers (SPIR-V specification 3.49.8).
#include "body.h"

#include <bit>
#include <llvm/IR/Constants.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;

struct MemoryOperands {
    bool is_volatile = false;
    bool is_nontemporal = false;
    llvm::MaybeAlign alignment;
    size_t next = 0;  // the index of the next operand
};

MemoryOperands memory_operands(Body& body, const Instruction& instruction, size_t index) {
    MemoryOperands operands;
    const uint32_t mask = instruction.operand(index);
    const uint32_t with_parameter = spv::MemoryAccessAlignedMask | spv::MemoryAccessMakePointerAvailableMask |
                                    spv::MemoryAccessMakePointerVisibleMask | spv::MemoryAccessAliasScopeINTELMaskMask |
                                    spv::MemoryAccessNoAliasINTELMaskMask;
    operands.next =
        std::min(index + 1 + static_cast<size_t>(std::popcount(mask & with_parameter)), instruction.operands.size());
    operands.is_volatile = (mask & spv::MemoryAccessVolatileMask) != 0;
    operands.is_nontemporal = (mask & spv::MemoryAccessNontemporalMask) != 0;
    if ((mask & spv::MemoryAccessAlignedMask) != 0) {
        const uint32_t alignment = instruction.operand(index + 1);
        if (llvm::isPowerOf2_32(alignment))
            operands.alignment = llvm::Align(alignment);
        else
            body.refuse(instruction, "the alignment is not a power of two");
    }
    return operands;
}

bool is_volatile_pointer(Body& body, const Instruction& instruction, size_t index) {
    return body.annotations().has(instruction.operand(index), spv::DecorationVolatile);
}

void mark_nontemporal(Body& body, llvm::Instruction& access) {
    auto* one = llvm::ConstantAsMetadata::get(body.builder().getInt32(1));
    access.setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(access.getContext(), {one}));
}

bool is_address(Body& body, const Instruction& instruction, size_t index) {
    const bool fits = body.value(instruction, index)->getType()->isPointerTy();
    if (!fits)
        body.refuse(instruction, "operand " + std::to_string(index) + " is not a pointer");
    return fits;
}

void load(Body& body, const Instruction& instruction) {
    if (const auto builtin = body.translation().builtin_variable(instruction.operand(0))) {
        body.define(instruction, body.read_builtin_variable(body.builder(), instruction, *builtin, instruction.type));
        return;
    }
    llvm::Type* type = body.result_type(instruction);
    if (!is_address(body, instruction, 0) || !type->isSized())
        return body.refuse(instruction, "this cannot be loaded");
    const MemoryOperands operands = memory_operands(body, instruction, 1);
    llvm::LoadInst* loaded =
        body.builder().CreateAlignedLoad(type, body.value(instruction, 0), operands.alignment,
                                         operands.is_volatile || is_volatile_pointer(body, instruction, 0));
    if (operands.is_nontemporal)
        mark_nontemporal(body, *loaded);
    body.define(instruction, loaded);
}

void store(Body& body, const Instruction& instruction) {
    Value* object = body.value(instruction, 1);
    if (!is_address(body, instruction, 0) || !object->getType()->isSized())
        return body.refuse(instruction, "this cannot be stored");
    const MemoryOperands operands = memory_operands(body, instruction, 2);
    llvm::StoreInst* stored =
        body.builder().CreateAlignedStore(object, body.value(instruction, 0), operands.alignment,
                                          operands.is_volatile || is_volatile_pointer(body, instruction, 0));
    if (operands.is_nontemporal)
        mark_nontemporal(body, *stored);
}

void copy(Body& body, const Instruction& instruction, Value* bytes, size_t operands_at) {
    if (!is_address(body, instruction, 0) || !is_address(body, instruction, 1))
        return;
    const MemoryOperands target = memory_operands(body, instruction, operands_at);
    const MemoryOperands source =
        target.next < instruction.operands.size() ? memory_operands(body, instruction, target.next) : target;
    body.builder().CreateMemCpy(body.value(instruction, 0), target.alignment, body.value(instruction, 1),
                                source.alignment, bytes, target.is_volatile || source.is_volatile);
}

void copy_object(Body& body, const Instruction& instruction) {
    llvm::Type* type = body.types().llvm(body.types().get(body.type_of(instruction, 0)).element);
    if (type == nullptr || !type->isSized())
        return body.refuse(instruction, "the pointer points to nothing of a known size");
    const llvm::DataLayout& layout = body.function().getParent()->getDataLayout();
    copy(body, instruction, body.builder().getInt64(layout.getTypeAllocSize(type).getFixedValue()), 2);
}

void copy_bytes(Body& body, const Instruction& instruction) {
    Value* bytes = body.value(instruction, 2);
    if (!bytes->getType()->isIntegerTy())
        return body.refuse(instruction, "the size is not an integer");
    copy(body, instruction, body.builder().CreateZExtOrTrunc(bytes, body.builder().getInt64Ty()), 3);
}

// A variable of the function. Like Clang's, it has no initializer; an initial value is stored.
void make_variable(Body& body, const Instruction& instruction) {
    llvm::Type* type = body.types().llvm(body.types().get(instruction.type).element);
    if (instruction.operand(0) != spv::StorageClassFunction || type == nullptr || !type->isSized())
        return body.refuse(instruction, "a variable of a function is of storage class Function and has a size");
    llvm::AllocaInst* variable = body.builder().CreateAlloca(type);
    const auto alignment = body.annotations().decoration(instruction.result, spv::DecorationAlignment);
    if (alignment && llvm::isPowerOf2_32(alignment->operand(0)) && alignment->operand(0) <= 4096)
        variable->setAlignment(std::max(variable->getAlign(), llvm::Align(alignment->operand(0))));
    body.define(instruction, variable);
    if (instruction.operands.size() > 1)
        body.builder().CreateAlignedStore(body.value(instruction, 1), variable, variable->getAlign());
}

// Appends one index to `indexes` and returns the id of the type that it leads to; 0 when there is no such member.
uint32_t step(Body& body, const Instruction& instruction, size_t index, uint32_t type,
              llvm::SmallVectorImpl<Value*>& indexes) {
    const Type& of = body.types().get(type);
    Value* value = body.value(instruction, index);
    if (!value->getType()->isIntegerTy())
        return 0;
    if (of.kind != spv::OpTypeStruct) {
        indexes.push_back(value);
        return of.kind == spv::OpTypeArray || of.kind == spv::OpTypeVector ? of.element : 0;
    }
    const auto member = body.integer(instruction, index);
    if (!member || *member >= of.members.size())
        return 0;
    indexes.push_back(body.builder().getInt32(static_cast<uint32_t>(*member)));
    return of.members[*member];
}

void access(Body& body, const Instruction& instruction) {
    const bool is_in_bounds =
        instruction.opcode == spv::OpInBoundsAccessChain || instruction.opcode == spv::OpInBoundsPtrAccessChain;
    const bool has_element =
        instruction.opcode == spv::OpPtrAccessChain || instruction.opcode == spv::OpInBoundsPtrAccessChain;
    uint32_t type = body.types().get(body.type_of(instruction, 0)).element;
    llvm::Type* pointee = body.types().llvm(type);
    if (!is_address(body, instruction, 0) || pointee == nullptr || !pointee->isSized())
        return body.refuse(instruction, "the base points to nothing of a known size");
    llvm::SmallVector<Value*, 8> indexes;
    indexes.push_back(has_element ? body.value(instruction, 1) : body.builder().getInt32(0));
    for (size_t i = has_element ? 2 : 1; i < instruction.operands.size(); ++i) {
        type = step(body, instruction, i, type, indexes);
        if (type == 0)
            return body.refuse(instruction, "index " + std::to_string(i) + " leads to nothing");
    }
    if (!indexes.front()->getType()->isIntegerTy())
        return body.refuse(instruction, "the element is not an integer");
    body.define(instruction, body.builder().CreateGEP(pointee, body.value(instruction, 0), indexes, "",
                                                      is_in_bounds ? llvm::GEPNoWrapFlags::inBounds()
                                                                   : llvm::GEPNoWrapFlags::none()));
}

// OpPtrDiff: in elements of the type that the pointers point to.
void subtract_pointers(Body& body, const Instruction& instruction) {
    llvm::Type* type = body.types().llvm(body.types().get(body.type_of(instruction, 0)).element);
    if (!is_address(body, instruction, 0) || !is_address(body, instruction, 1) || type == nullptr || !type->isSized())
        return body.refuse(instruction, "the pointers point to nothing of a known size");
    Builder& builder = body.builder();
    const llvm::DataLayout& layout = body.function().getParent()->getDataLayout();
    const uint64_t size = std::max<uint64_t>(1, layout.getTypeAllocSize(type).getFixedValue());
    Value* bytes = builder.CreateSub(builder.CreatePtrToInt(body.value(instruction, 0), builder.getInt64Ty()),
                                     builder.CreatePtrToInt(body.value(instruction, 1), builder.getInt64Ty()));
    body.define(instruction, builder.CreateSExtOrTrunc(builder.CreateExactSDiv(bytes, builder.getInt64(size)),
                                                       body.result_type(instruction)));
}

void size_of(Body& body, const Instruction& instruction) {
    llvm::Type* type = body.types().llvm(body.types().get(body.type_of(instruction, 0)).element);
    if (type == nullptr || !type->isSized())
        return body.refuse(instruction, "the pointer points to nothing of a known size");
    const llvm::DataLayout& layout = body.function().getParent()->getDataLayout();
    body.define(instruction,
                llvm::ConstantInt::get(body.result_type(instruction), layout.getTypeAllocSize(type).getFixedValue()));
}

} // namespace

bool emit_memory(Body& body, const Instruction& instruction) {
    switch (instruction.opcode) {
    case spv::OpLoad: load(body, instruction); return true;
    case spv::OpStore: store(body, instruction); return true;
    case spv::OpCopyMemory: copy_object(body, instruction); return true;
    case spv::OpCopyMemorySized: copy_bytes(body, instruction); return true;
    case spv::OpVariable: make_variable(body, instruction); return true;
    case spv::OpAccessChain:
    case spv::OpInBoundsAccessChain:
    case spv::OpPtrAccessChain:
    case spv::OpInBoundsPtrAccessChain: access(body, instruction); return true;
    case spv::OpPtrDiff: subtract_pointers(body, instruction); return true;
    case spv::OpSizeOf: size_of(body, instruction); return true;
    default: return false;
    }
}

} // namespace polder::compiler::spirv
