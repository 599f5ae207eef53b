// Instructions on pipes (SPIR-V specification 3.49.23): calls of the functions that Clang calls for OpenCL C's read_pipe,
// write_pipe and reservations. A table lists the functions with the kinds of their operands; each operand is checked against
// its kind, since a pipe of the other direction would be read with the wrong function.
#include "body.h"

#include <algorithm>
#include <array>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;

// `operands`, one letter each: s the scope of the work-items that call it together, r a pipe to read, w a pipe to write, x a pipe
// of either direction, i a reservation, u a number, p a pointer to a packet.
struct PipeFunction {
    spv::Op opcode;
    std::string_view name;
    std::string_view operands;
    enum class Result : uint8_t { number, reservation, nothing } result;
};
using PipeResult = PipeFunction::Result;

constexpr std::array pipe_functions{
    PipeFunction{spv::OpReadPipe, "read_pipe_2", "rpuu", PipeResult::number},
    PipeFunction{spv::OpWritePipe, "write_pipe_2", "wpuu", PipeResult::number},
    PipeFunction{spv::OpReservedReadPipe, "read_pipe_4", "riupuu", PipeResult::number},
    PipeFunction{spv::OpReservedWritePipe, "write_pipe_4", "wiupuu", PipeResult::number},
    PipeFunction{spv::OpReserveReadPipePackets, "reserve_read_pipe", "ruuu", PipeResult::reservation},
    PipeFunction{spv::OpReserveWritePipePackets, "reserve_write_pipe", "wuuu", PipeResult::reservation},
    PipeFunction{spv::OpCommitReadPipe, "commit_read_pipe", "riuu", PipeResult::nothing},
    PipeFunction{spv::OpCommitWritePipe, "commit_write_pipe", "wiuu", PipeResult::nothing},
    PipeFunction{spv::OpGetNumPipePackets, "get_pipe_num_packets", "xuu", PipeResult::number},
    PipeFunction{spv::OpGetMaxPipePackets, "get_pipe_max_packets", "xuu", PipeResult::number},
    PipeFunction{spv::OpGroupReserveReadPipePackets, "reserve_read_pipe", "sruuu", PipeResult::reservation},
    PipeFunction{spv::OpGroupReserveWritePipePackets, "reserve_write_pipe", "swuuu", PipeResult::reservation},
    PipeFunction{spv::OpGroupCommitReadPipe, "commit_read_pipe", "sriuu", PipeResult::nothing},
    PipeFunction{spv::OpGroupCommitWritePipe, "commit_write_pipe", "swiuu", PipeResult::nothing},
};

// The operand in the form in which the function takes it; null when it is not of this kind.
Value* pipe_operand(Body& body, const Instruction& instruction, size_t index, char kind) {
    Value* const value = body.value(instruction, index);
    const Type& type = body.types().get(body.type_of(instruction, index));
    switch (kind) {
    case 'r': return is_pipe_to(type, spv::AccessQualifierReadOnly) ? value : nullptr;
    case 'w': return is_pipe_to(type, spv::AccessQualifierWriteOnly) ? value : nullptr;
    case 'x': return type.kind == spv::OpTypePipe ? value : nullptr;
    case 'i': return type.kind == spv::OpTypeReserveId ? value : nullptr;
    case 'u':
        return value->getType()->isIntegerTy() ? body.builder().CreateZExtOrTrunc(value, body.builder().getInt32Ty())
                                               : nullptr;
    default: break;
    }
    // The function takes a generic pointer, and constant memory has no generic addresses.
    if (type.kind != spv::OpTypePointer || type.storage == spv::StorageClassUniformConstant)
        return nullptr;
    return body.builder().CreateAddrSpaceCast(value,
                                              llvm::PointerType::get(body.builder().getContext(), generic_space));
}

llvm::Type* result_type(Body& body, PipeResult result) {
    llvm::LLVMContext& context = body.builder().getContext();
    switch (result) {
    case PipeResult::number: return llvm::Type::getInt32Ty(context);
    case PipeResult::reservation: return reservation_type(context);
    case PipeResult::nothing: break;
    }
    return llvm::Type::getVoidTy(context);
}

void call_pipe_function(Body& body, const Instruction& instruction, const PipeFunction& function) {
    std::string name = "__";
    llvm::SmallVector<Value*, 6> arguments;
    for (size_t i = 0; i < function.operands.size(); ++i) {
        const char kind = function.operands[i];
        if (kind == 's') {
            name += group_name(body, instruction, i) + "_";
            continue;
        }
        Value* const argument = pipe_operand(body, instruction, i, kind);
        if (argument == nullptr)
            return body.refuse(instruction, "operand " + std::to_string(i) + " is not of the type that pipes need");
        arguments.push_back(argument);
    }
    name += function.name;
    if (function.operands.front() == 'x')
        name +=
            is_pipe_to(body.types().get(body.type_of(instruction, 0)), spv::AccessQualifierReadOnly) ? "_ro" : "_wo";
    llvm::Type* const type = result_type(body, function.result);
    if (function.result != PipeResult::nothing && body.result_type(instruction) != type)
        return body.refuse(instruction, "the result is not of the type that pipes have");
    Value* const result = body.call(name, type, arguments, Effect::any);
    if (function.result != PipeResult::nothing)
        body.define(instruction, result);
}

void is_valid(Body& body, const Instruction& instruction) {
    Value* const reserved = pipe_operand(body, instruction, 0, 'i');
    llvm::Type* const truth = body.builder().getInt1Ty();
    if (reserved == nullptr || body.result_type(instruction) != truth)
        return body.refuse(instruction, "the operand is not a reservation, or the result not a truth value");
    const std::string name = MangledName("is_valid_reserve_id", body.types()).add_named("ocl_reserveid").text();
    body.define(instruction, body.call(name, truth, {reserved}, Effect::none));
}

}  // namespace

bool emit_pipe(Body& body, const Instruction& instruction) {
    if (instruction.opcode == spv::OpIsValidReserveId) {
        is_valid(body, instruction);
        return true;
    }
    const auto* const found = std::ranges::find(pipe_functions, instruction.opcode, &PipeFunction::opcode);
    if (found == pipe_functions.end())
        return false;
    call_pipe_function(body, instruction, *found);
    return true;
}

}  // namespace polder::compiler::spirv
