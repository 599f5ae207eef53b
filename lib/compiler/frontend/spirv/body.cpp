// Dispatches each instruction to its family, and translates built-in variables (such as GlobalInvocationId) to calls of OpenCL C's
// work-item functions.
#include "body.h"

#include "image.h"

#include <algorithm>
#include <array>
#include <llvm/IR/Constants.h>

namespace polder::compiler::spirv {
namespace {

// The function of OpenCL C for a built-in variable of SPIR-V.
struct BuiltinVariable {
    spv::BuiltIn builtin;
    std::string_view function;
    enum class Result : uint8_t { size_per_dimension, size, uint, mask } result;
};
using enum BuiltinVariable::Result;

constexpr std::array builtin_variables{
    BuiltinVariable{spv::BuiltInNumWorkgroups, "get_num_groups", size_per_dimension},
    BuiltinVariable{spv::BuiltInWorkgroupSize, "get_local_size", size_per_dimension},
    BuiltinVariable{spv::BuiltInWorkgroupId, "get_group_id", size_per_dimension},
    BuiltinVariable{spv::BuiltInLocalInvocationId, "get_local_id", size_per_dimension},
    BuiltinVariable{spv::BuiltInGlobalInvocationId, "get_global_id", size_per_dimension},
    BuiltinVariable{spv::BuiltInGlobalSize, "get_global_size", size_per_dimension},
    BuiltinVariable{spv::BuiltInEnqueuedWorkgroupSize, "get_enqueued_local_size", size_per_dimension},
    BuiltinVariable{spv::BuiltInGlobalOffset, "get_global_offset", size_per_dimension},
    BuiltinVariable{spv::BuiltInLocalInvocationIndex, "get_local_linear_id", size},
    BuiltinVariable{spv::BuiltInGlobalLinearId, "get_global_linear_id", size},
    BuiltinVariable{spv::BuiltInWorkDim, "get_work_dim", uint},
    BuiltinVariable{spv::BuiltInSubgroupSize, "get_sub_group_size", uint},
    BuiltinVariable{spv::BuiltInSubgroupMaxSize, "get_max_sub_group_size", uint},
    BuiltinVariable{spv::BuiltInNumSubgroups, "get_num_sub_groups", uint},
    BuiltinVariable{spv::BuiltInNumEnqueuedSubgroups, "get_enqueued_num_sub_groups", uint},
    BuiltinVariable{spv::BuiltInSubgroupId, "get_sub_group_id", uint},
    BuiltinVariable{spv::BuiltInSubgroupLocalInvocationId, "get_sub_group_local_id", uint},
    BuiltinVariable{spv::BuiltInSubgroupEqMask, "get_sub_group_eq_mask", mask},
    BuiltinVariable{spv::BuiltInSubgroupGeMask, "get_sub_group_ge_mask", mask},
    BuiltinVariable{spv::BuiltInSubgroupGtMask, "get_sub_group_gt_mask", mask},
    BuiltinVariable{spv::BuiltInSubgroupLeMask, "get_sub_group_le_mask", mask},
    BuiltinVariable{spv::BuiltInSubgroupLtMask, "get_sub_group_lt_mask", mask},
};

constexpr std::array families{
    emit_arithmetic,      emit_comparison, emit_bits,   emit_dot_product, emit_conversion,
    emit_composite,       emit_memory,     emit_atomic, emit_control,     emit_group,
    emit_intel_sub_group, emit_extended,   emit_image,  emit_pipe,        emit_device_enqueue};

// Instructions of a body that do not affect the results, such as line numbers.
bool is_without_effect(spv::Op opcode) {
    switch (opcode) {
    case spv::OpNop:
    case spv::OpLine:
    case spv::OpNoLine:
    case spv::OpLoopMerge:
    case spv::OpSelectionMerge:
    case spv::OpLifetimeStart:
    case spv::OpLifetimeStop: return true;
    default: return false;
    }
}

}  // namespace

void Body::emit(const Instruction& instruction) {
    if (is_without_effect(instruction.opcode))
        return;
    for (auto* const emit_family : families)
        if (emit_family(*this, instruction))
            return;
    refuse(instruction, "this instruction is not supported");
}

llvm::Value* Body::value_of(const Instruction& instruction, uint32_t id) {
    if (translation_.builtin_variable(id))
        return address_of_builtin_variable(instruction, id);
    llvm::Value* const value = translation_.value(instruction, id);
    const Type& type = types().get(translation_.type_of(id));
    // An OpConstantSampler is kept as its bits, because only the body of a function can make a sampler. The null reservation is a value that
    // the library defines.
    if (type.kind == spv::OpTypeSampler && value->getType()->isIntegerTy())
        return make_sampler(*this, type.llvm, value);
    if (const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
        type.kind == spv::OpTypeReserveId && constant != nullptr && constant->isNullValue())
        return call("__polder_null_reservation", type.llvm, {}, Effect::none);
    return value;
}

llvm::BasicBlock* Body::block(uint32_t label) {
    llvm::BasicBlock*& place = blocks_[label];
    if (place == nullptr)
        place = llvm::BasicBlock::Create(translation_.context(), "", &function_);
    return place;
}

llvm::Value* Body::read_builtin_variable(Builder& builder, const Instruction& instruction, spv::BuiltIn builtin,
                                         uint32_t type) {
    const auto found = std::find_if(builtin_variables.begin(), builtin_variables.end(),
                                    [&](const BuiltinVariable& each) { return each.builtin == builtin; });
    llvm::Type* wanted = types().llvm(type);
    if (found == builtin_variables.end() || wanted == nullptr || !wanted->isIntOrIntVectorTy()) {
        refuse(instruction, "built-in variable " + std::to_string(builtin) + " is not supported");
        return llvm::PoisonValue::get(builder.getInt32Ty());
    }
    // The functions return these types. A built-in variable of another type is an error.
    if (wanted->isVectorTy() != (found->result == size_per_dimension || found->result == mask)) {
        refuse(instruction, "built-in variable " + std::to_string(builtin) + " is of another type");
        return llvm::PoisonValue::get(wanted);
    }
    const MangledName plain(found->function, types());
    const auto call_plain = [&](llvm::Type* result) {
        return translation_.call_builtin(builder, plain.text(), result, {}, Effect::none);
    };
    switch (found->result) {
    case size: return builder.CreateZExtOrTrunc(call_plain(builder.getInt64Ty()), wanted);
    case uint: return builder.CreateZExtOrTrunc(call_plain(builder.getInt32Ty()), wanted);
    case mask: return call_plain(llvm::FixedVectorType::get(builder.getInt32Ty(), 4));
    case size_per_dimension: break;
    }
    auto* vector = llvm::cast<llvm::FixedVectorType>(wanted);
    const std::string name = MangledName(found->function, types()).add_code("j").text();
    llvm::Value* all = llvm::PoisonValue::get(wanted);
    for (unsigned i = 0; i < vector->getNumElements(); ++i) {
        llvm::Value* one =
            translation_.call_builtin(builder, name, builder.getInt64Ty(), {builder.getInt32(i)}, Effect::none);
        all = builder.CreateInsertElement(all, builder.CreateZExtOrTrunc(one, vector->getElementType()), i);
    }
    return all;
}

// For a module that takes the address of a built-in variable: the address of a copy in private memory.
llvm::Value* Body::address_of_builtin_variable(const Instruction& instruction, uint32_t id) {
    llvm::Value*& place = builtin_addresses_[id];
    if (place != nullptr)
        return place;
    const uint32_t type = types().get(translation_.type_of(id)).element;
    if (types().llvm(type) == nullptr || !types().llvm(type)->isSized()) {
        refuse(instruction, "the built-in variable's type has no size");
        return place = llvm::PoisonValue::get(llvm::PointerType::get(translation_.context(), 0));
    }
    llvm::BasicBlock& entry = function_.getEntryBlock();
    Builder at_entry(&entry, entry.getFirstInsertionPt());
    place = at_entry.CreateAlloca(types().llvm(type));
    at_entry.CreateStore(read_builtin_variable(at_entry, instruction, *translation_.builtin_variable(id), type), place);
    return place;
}

}  // namespace polder::compiler::spirv
