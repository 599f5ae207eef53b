// Barriers, and operations that the work-items of a work-group or sub-group execute together (SPIR-V specification 3.49.20 to
// 3.49.21, 3.49.24). They become calls of OpenCL C's functions, whose names come from two tables.
#include "body.h"

#include <algorithm>
#include <array>
#include <llvm/IR/Constants.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;

// Functions whose names end with the operation: reduce_add, scan_inclusive_min.
struct Reduction {
    spv::Op opcode;
    std::string_view operation;
    Sign sign = Sign::is_signed;
    // uniform_of_work_groups: only work-groups have the function under this name; sub-groups have it with `_non_uniform`.
    enum class Uniformity : uint8_t { uniform, non_uniform, uniform_of_work_groups } uniformity = Uniformity::uniform;
};
using signs::s, signs::u;
constexpr auto non_uniform = Reduction::Uniformity::non_uniform;
constexpr auto of_work_groups = Reduction::Uniformity::uniform_of_work_groups;

constexpr std::array reductions{
    Reduction{spv::OpGroupIAdd, "add"},
    Reduction{spv::OpGroupFAdd, "add"},
    Reduction{spv::OpGroupFMin, "min"},
    Reduction{spv::OpGroupUMin, "min", u},
    Reduction{spv::OpGroupSMin, "min"},
    Reduction{spv::OpGroupFMax, "max"},
    Reduction{spv::OpGroupUMax, "max", u},
    Reduction{spv::OpGroupSMax, "max"},
    Reduction{spv::OpGroupIMulKHR, "mul", s, of_work_groups},
    Reduction{spv::OpGroupFMulKHR, "mul", s, of_work_groups},
    Reduction{spv::OpGroupBitwiseAndKHR, "and", s, of_work_groups},
    Reduction{spv::OpGroupBitwiseOrKHR, "or", s, of_work_groups},
    Reduction{spv::OpGroupBitwiseXorKHR, "xor", s, of_work_groups},
    Reduction{spv::OpGroupLogicalAndKHR, "logical_and", s, of_work_groups},
    Reduction{spv::OpGroupLogicalOrKHR, "logical_or", s, of_work_groups},
    Reduction{spv::OpGroupLogicalXorKHR, "logical_xor", s, of_work_groups},
    Reduction{spv::OpGroupNonUniformIAdd, "add", s, non_uniform},
    Reduction{spv::OpGroupNonUniformFAdd, "add", s, non_uniform},
    Reduction{spv::OpGroupNonUniformIMul, "mul", s, non_uniform},
    Reduction{spv::OpGroupNonUniformFMul, "mul", s, non_uniform},
    Reduction{spv::OpGroupNonUniformSMin, "min", s, non_uniform},
    Reduction{spv::OpGroupNonUniformUMin, "min", u, non_uniform},
    Reduction{spv::OpGroupNonUniformFMin, "min", s, non_uniform},
    Reduction{spv::OpGroupNonUniformSMax, "max", s, non_uniform},
    Reduction{spv::OpGroupNonUniformUMax, "max", u, non_uniform},
    Reduction{spv::OpGroupNonUniformFMax, "max", s, non_uniform},
    Reduction{spv::OpGroupNonUniformBitwiseAnd, "and", s, non_uniform},
    Reduction{spv::OpGroupNonUniformBitwiseOr, "or", s, non_uniform},
    Reduction{spv::OpGroupNonUniformBitwiseXor, "xor", s, non_uniform},
    Reduction{spv::OpGroupNonUniformLogicalAnd, "logical_and", s, non_uniform},
    Reduction{spv::OpGroupNonUniformLogicalOr, "logical_or", s, non_uniform},
    Reduction{spv::OpGroupNonUniformLogicalXor, "logical_xor", s, non_uniform},
};

// Functions of a sub-group. `parameters`: one letter for each operand after the scope: v a value, p a truth value (int
// in OpenCL C), j a uint, i an int, b a ballot (uint4).
struct SubGroupFunction {
    spv::Op opcode;
    std::string_view name;
    std::string_view parameters;
};

constexpr std::array sub_group_functions{
    SubGroupFunction{spv::OpGroupNonUniformElect, "sub_group_elect", ""},
    SubGroupFunction{spv::OpGroupNonUniformAll, "sub_group_non_uniform_all", "p"},
    SubGroupFunction{spv::OpGroupNonUniformAny, "sub_group_non_uniform_any", "p"},
    SubGroupFunction{spv::OpGroupNonUniformAllEqual, "sub_group_non_uniform_all_equal", "v"},
    SubGroupFunction{spv::OpGroupNonUniformBroadcast, "sub_group_non_uniform_broadcast", "vj"},
    SubGroupFunction{spv::OpGroupNonUniformBroadcastFirst, "sub_group_broadcast_first", "v"},
    SubGroupFunction{spv::OpGroupNonUniformBallot, "sub_group_ballot", "p"},
    SubGroupFunction{spv::OpGroupNonUniformInverseBallot, "sub_group_inverse_ballot", "b"},
    SubGroupFunction{spv::OpGroupNonUniformBallotBitExtract, "sub_group_ballot_bit_extract", "bj"},
    SubGroupFunction{spv::OpGroupNonUniformBallotFindLSB, "sub_group_ballot_find_lsb", "b"},
    SubGroupFunction{spv::OpGroupNonUniformBallotFindMSB, "sub_group_ballot_find_msb", "b"},
    SubGroupFunction{spv::OpGroupNonUniformShuffle, "sub_group_shuffle", "vj"},
    SubGroupFunction{spv::OpGroupNonUniformShuffleXor, "sub_group_shuffle_xor", "vj"},
    SubGroupFunction{spv::OpGroupNonUniformShuffleUp, "sub_group_shuffle_up", "vj"},
    SubGroupFunction{spv::OpGroupNonUniformShuffleDown, "sub_group_shuffle_down", "vj"},
    SubGroupFunction{spv::OpGroupNonUniformRotateKHR, "sub_group_rotate", "vi"},
};

// A truth value is an int in OpenCL C.
Value* as_int(Body& body, const Instruction& instruction, Value* value) {
    if (value->getType()->isIntegerTy(1))
        return body.builder().CreateZExt(value, body.builder().getInt32Ty());
    body.refuse(instruction, "the predicate is not a truth value");
    return body.builder().getInt32(0);
}

// Calls the function. OpenCL C's function returns a truth value as an int.
void define_call(Body& body, const Instruction& instruction, const std::string& name,
                 llvm::ArrayRef<Value*> arguments) {
    Builder& builder = body.builder();
    llvm::Type* type = body.result_type(instruction);
    if (type->isIntegerTy(1))
        body.define(instruction, builder.CreateICmpNE(body.call(name, builder.getInt32Ty(), arguments, Effect::any),
                                                      builder.getInt32(0)));
    else
        body.define(instruction, body.call(name, type, arguments, Effect::any));
}

void vote(Body& body, const Instruction& instruction) {
    const std::string name =
        group_name(body, instruction, 0) + (instruction.opcode == spv::OpGroupAll ? "_all" : "_any");
    define_call(body, instruction, MangledName(name, body.types()).add_code("i").text(),
                {as_int(body, instruction, body.value(instruction, 1))});
}

void broadcast(Body& body, const Instruction& instruction) {
    const std::string group = group_name(body, instruction, 0);
    MangledName name(group + "_broadcast", body.types());
    name.add(instruction.type);
    llvm::SmallVector<Value*, 4> arguments{body.value(instruction, 1)};
    Builder& builder = body.builder();
    Value* id = body.value(instruction, 2);
    const bool is_sub_group = group == "sub_group";
    llvm::Type* id_type = is_sub_group ? builder.getInt32Ty() : builder.getInt64Ty();
    const auto add = [&](Value* number) {
        name.add_code(is_sub_group ? "j" : "m");
        arguments.push_back(builder.CreateZExtOrTrunc(number, id_type));
    };
    if (!id->getType()->isIntOrIntVectorTy())
        return body.refuse(instruction, "the local id is not an integer");
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(id->getType()))
        for (unsigned i = 0; i < vector->getNumElements(); ++i)
            add(builder.CreateExtractElement(id, i));
    else
        add(id);
    define_call(body, instruction, name.text(), arguments);
}

// Operands: scope, operation, value, and for clusters the size.
void reduce(Body& body, const Instruction& instruction, const Reduction& row) {
    std::string name = group_name(body, instruction, 0);
    if (row.uniformity == non_uniform || (row.uniformity == of_work_groups && name == "sub_group"))
        name += "_non_uniform";
    const bool is_clustered = instruction.operand(1) == spv::GroupOperationClusteredReduce;
    switch (instruction.operand(1)) {
    case spv::GroupOperationReduce: name += "_reduce_"; break;
    case spv::GroupOperationInclusiveScan: name += "_scan_inclusive_"; break;
    case spv::GroupOperationExclusiveScan: name += "_scan_exclusive_"; break;
    case spv::GroupOperationClusteredReduce: name = "sub_group_clustered_reduce_"; break;
    default: return body.refuse(instruction, "this group operation is not supported");
    }
    MangledName mangled(name.append(row.operation), body.types());
    Value* value = body.value(instruction, 2);
    llvm::SmallVector<Value*, 2> arguments;
    if (value->getType()->isIntegerTy(1)) {
        mangled.add_code("i");
        arguments.push_back(as_int(body, instruction, value));
    } else {
        mangled.add(instruction.type, row.sign);
        arguments.push_back(value);
    }
    if (is_clustered) {
        mangled.add_code("j");
        arguments.push_back(body.value(instruction, 3));
    }
    define_call(body, instruction, mangled.text(), arguments);
}

void ballot_bit_count(Body& body, const Instruction& instruction) {
    std::string name = "sub_group_ballot_bit_count";
    if (instruction.operand(1) != spv::GroupOperationReduce)
        name = instruction.operand(1) == spv::GroupOperationInclusiveScan ? "sub_group_ballot_inclusive_scan"
                                                                          : "sub_group_ballot_exclusive_scan";
    define_call(body, instruction, MangledName(name, body.types()).add(body.type_of(instruction, 2), u).text(),
                {body.value(instruction, 2)});
}

void call_sub_group_function(Body& body, const Instruction& instruction, const SubGroupFunction& row) {
    std::string function{row.name};
    std::string parameters{row.parameters};
    if (instruction.opcode == spv::OpGroupNonUniformRotateKHR && instruction.operands.size() > 3) {
        function = "sub_group_clustered_rotate";
        parameters += "j";
    }
    MangledName name(function, body.types());
    llvm::SmallVector<Value*, 3> arguments;
    for (size_t i = 0; i < parameters.size(); ++i) {
        Value* value = body.value(instruction, i + 1);
        switch (parameters[i]) {
        case 'v': name.add(body.type_of(instruction, i + 1)); break;
        case 'b': name.add(body.type_of(instruction, i + 1), u); break;
        case 'p':
            name.add_code("i");
            value = as_int(body, instruction, value);
            break;
        default: name.add_code(parameters.substr(i, 1));
        }
        arguments.push_back(value);
    }
    define_call(body, instruction, name.text(), arguments);
}

void barrier(Body& body, const Instruction& instruction) {
    const std::string name = MangledName(group_name(body, instruction, 0) + "_barrier", body.types())
                                 .add_code("j")
                                 .add_named("memory_scope")
                                 .text();
    body.call(name, body.builder().getVoidTy(),
              {opencl_fence_flags(body, instruction, 2), opencl_scope(body, instruction, 1)}, Effect::any);
}

// Operands: scope, destination, source, number of elements, stride, event.
void copy_asynchronously(Body& body, const Instruction& instruction) {
    const bool is_strided = body.integer(instruction, 4) != uint64_t{1};
    const uint32_t destination = body.type_of(instruction, 1);
    const uint32_t source = body.type_of(instruction, 2);
    MangledName name(is_strided ? "async_work_group_strided_copy" : "async_work_group_copy", body.types());
    name.add(destination).add_const_pointer(source).add_code("m");
    llvm::SmallVector<Value*, 5> arguments{body.value(instruction, 1), body.value(instruction, 2),
                                           body.value(instruction, 3)};
    if (is_strided) {
        name.add_code("m");
        arguments.push_back(body.value(instruction, 4));
    }
    name.add_named("ocl_event");
    arguments.push_back(body.value(instruction, 5));
    body.define(instruction, body.call(name.text(), body.result_type(instruction), arguments, Effect::any));
}

void wait_for_events(Body& body, const Instruction& instruction) {
    const std::string name =
        MangledName("wait_group_events", body.types()).add_code("i").add(body.type_of(instruction, 2)).text();
    body.call(name, body.builder().getVoidTy(), {body.value(instruction, 1), body.value(instruction, 2)}, Effect::any);
}

void read_clock(Body& body, const Instruction& instruction) {
    const auto scope = body.integer(instruction, 0);
    const std::string name = scope == spv::ScopeDevice      ? "device"
                             : scope == spv::ScopeWorkgroup ? "work_group"
                             : scope == spv::ScopeSubgroup  ? "sub_group"
                                                            : "";
    llvm::Type* type = body.result_type(instruction);
    if (name.empty() || type == nullptr || type->getPrimitiveSizeInBits() != 64 || !type->isIntOrIntVectorTy())
        return body.refuse(instruction, "there is no such clock");
    const MangledName function((type->isVectorTy() ? "clock_read_hilo_" : "clock_read_") + name, body.types());
    define_call(body, instruction, function.text(), {});
}

bool emit_from_tables(Body& body, const Instruction& instruction) {
    for (const Reduction& row : reductions)
        if (row.opcode == instruction.opcode) {
            reduce(body, instruction, row);
            return true;
        }
    for (const SubGroupFunction& row : sub_group_functions)
        if (row.opcode == instruction.opcode) {
            call_sub_group_function(body, instruction, row);
            return true;
        }
    return false;
}

}  // namespace

std::string group_name(Body& body, const Instruction& instruction, size_t index) {
    const auto scope = body.integer(instruction, index);
    if (scope == spv::ScopeWorkgroup)
        return "work_group";
    if (scope == spv::ScopeSubgroup)
        return "sub_group";
    body.refuse(instruction, "the scope must be the constant Workgroup or Subgroup");
    return {};
}

Value* opencl_scope(Body& body, const Instruction& instruction, size_t index) {
    constexpr std::array<uint32_t, 5> scopes{3, 2, 1, 4, 0};  // of CrossDevice, Device, Workgroup, Subgroup, Invocation
    const auto scope = body.integer(instruction, index);
    if (!scope || *scope >= scopes.size())
        body.refuse(instruction, "the memory scope must be one of the constants CrossDevice to Invocation");
    return body.builder().getInt32(scope && *scope < scopes.size() ? scopes[*scope] : 0);
}

// CLK_LOCAL_MEM_FENCE 1, CLK_GLOBAL_MEM_FENCE 2, CLK_IMAGE_MEM_FENCE 4. All of them for semantics that are not constant.
Value* opencl_fence_flags(Body& body, const Instruction& instruction, size_t index) {
    const uint64_t semantics = body.integer(instruction, index).value_or(~uint64_t{0});
    const uint32_t flags = ((semantics & spv::MemorySemanticsWorkgroupMemoryMask) != 0 ? 1u : 0u) |
                           ((semantics & spv::MemorySemanticsCrossWorkgroupMemoryMask) != 0 ? 2u : 0u) |
                           ((semantics & spv::MemorySemanticsImageMemoryMask) != 0 ? 4u : 0u);
    return body.builder().getInt32(flags);
}

bool emit_group(Body& body, const Instruction& instruction) {
    switch (instruction.opcode) {
    case spv::OpControlBarrier: barrier(body, instruction); return true;
    case spv::OpGroupAll:
    case spv::OpGroupAny: vote(body, instruction); return true;
    case spv::OpGroupBroadcast: broadcast(body, instruction); return true;
    case spv::OpGroupNonUniformBallotBitCount: ballot_bit_count(body, instruction); return true;
    case spv::OpGroupAsyncCopy: copy_asynchronously(body, instruction); return true;
    case spv::OpReadClockKHR: read_clock(body, instruction); return true;
    case spv::OpGroupWaitEvents: wait_for_events(body, instruction); return true;
    default: return emit_from_tables(body, instruction);
    }
}

}  // namespace polder::compiler::spirv
