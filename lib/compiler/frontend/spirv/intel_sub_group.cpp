// The instructions of SPV_INTEL_subgroups on values and buffers: calls of the functions of cl_intel_subgroups.
#include "body.h"

#include <llvm/IR/DerivedTypes.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;

// The last operand is an id or a distance, a uint; those before it are of the result's type.
void shuffle(Body& body, const Instruction& instruction, std::string_view name) {
    const size_t last = instruction.operands.size() - 1;
    MangledName mangled(name, body.types());
    llvm::SmallVector<Value*, 3> arguments;
    for (size_t i = 0; i < last; ++i) {
        arguments.push_back(body.value(instruction, i));
        mangled.add(instruction.type);
        if (arguments.back()->getType() != body.result_type(instruction))
            return body.refuse(instruction, "the values are not of the result's type");
    }
    arguments.push_back(body.value(instruction, last));
    if (!arguments.back()->getType()->isIntegerTy(32))
        return body.refuse(instruction, "the last operand is not a 32-bit integer");
    const std::string text = mangled.add_code("j").text();
    body.define(instruction, body.call(text, body.result_type(instruction), arguments, Effect::any));
}

// The suffix of the functions for blocks of the type: its width, and the number of elements. Empty: there is no such function.
std::string block_suffix(const Types& types, uint32_t type) {
    const Type& block = types.get(type);
    const bool is_vector = block.kind == spv::OpTypeVector;
    const Type& element = is_vector ? types.get(block.element) : block;
    if (element.kind != spv::OpTypeInt)
        return {};
    const std::string suffix = element.width == 8    ? "_uc"
                               : element.width == 16 ? "_us"
                               : element.width == 32 ? "_ui"
                                                     : "_ul";
    if (!is_vector)
        return suffix;
    const bool has_wide_blocks = element.width <= 16;
    if (block.count == 3 || block.count > (has_wide_blocks ? 16 : 8))
        return {};
    return suffix + std::to_string(block.count);
}

// The name of the function, whose first parameter is the pointer; refuses what OpenCL does not have, and returns nothing then.
std::optional<MangledName> block_function(Body& body, const Instruction& instruction, const std::string& name,
                                          uint32_t block_type) {
    const Types& types = body.types();
    const Type& pointer = types.get(body.type_of(instruction, 0));
    const Type& block = types.get(block_type);
    const uint32_t element = block.kind == spv::OpTypeVector ? block.element : block_type;
    const std::string suffix = block_suffix(types, block_type);
    if (suffix.empty())
        body.refuse(instruction, "a block's elements are 1, 2, 4 or 8 integers, or 16 of at most 16 bits");
    else if (pointer.kind != spv::OpTypePointer || pointer.storage != spv::StorageClassCrossWorkgroup)
        body.refuse(instruction, "the address of a block must be a pointer to CrossWorkgroup");
    else if (pointer.element != element)
        body.refuse(instruction, "the pointer does not point to elements of the block's type");
    else
        return MangledName(name + suffix, types);
    return std::nullopt;
}

void read_block(Body& body, const Instruction& instruction) {
    auto name = block_function(body, instruction, "intel_sub_group_block_read", instruction.type);
    if (!name)
        return;
    name->add_const_pointer(body.type_of(instruction, 0), Sign::is_unsigned);
    body.define(instruction,
                body.call(name->text(), body.result_type(instruction), {body.value(instruction, 0)}, Effect::any));
}

void write_block(Body& body, const Instruction& instruction) {
    const uint32_t block = body.type_of(instruction, 1);
    auto name = block_function(body, instruction, "intel_sub_group_block_write", block);
    if (!name)
        return;
    name->add(body.type_of(instruction, 0), Sign::is_unsigned).add(block, Sign::is_unsigned);
    body.call(name->text(), body.builder().getVoidTy(), {body.value(instruction, 0), body.value(instruction, 1)},
              Effect::any);
}

}  // namespace

bool emit_intel_sub_group(Body& body, const Instruction& instruction) {
    switch (instruction.opcode) {
    case spv::OpSubgroupShuffleINTEL: shuffle(body, instruction, "intel_sub_group_shuffle"); return true;
    case spv::OpSubgroupShuffleDownINTEL: shuffle(body, instruction, "intel_sub_group_shuffle_down"); return true;
    case spv::OpSubgroupShuffleUpINTEL: shuffle(body, instruction, "intel_sub_group_shuffle_up"); return true;
    case spv::OpSubgroupShuffleXorINTEL: shuffle(body, instruction, "intel_sub_group_shuffle_xor"); return true;
    case spv::OpSubgroupBlockReadINTEL: read_block(body, instruction); return true;
    case spv::OpSubgroupBlockWriteINTEL: write_block(body, instruction); return true;
    default: return false;
    }
}

}  // namespace polder::compiler::spirv
