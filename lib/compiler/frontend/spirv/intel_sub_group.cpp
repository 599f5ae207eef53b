// The instructions of SPV_INTEL_subgroups: calls of the functions of cl_intel_subgroups.
#include "image.h"

#include <llvm/IR/DerivedTypes.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;

// The last operand is an id or a distance, a uint; those before it are of the result's type.
void shuffle(Body& body, const Instruction& instruction, std::string_view name) {
    if (!body.result_type(instruction)->isIntOrIntVectorTy() && !body.result_type(instruction)->isFPOrFPVectorTy())
        return body.refuse(instruction, "only numbers and vectors of numbers are shuffled");
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

// The name of the function, whose parameters begin with the image and the coordinate; nothing, and refused, for others.
std::optional<MangledName> image_block_function(Body& body, const Instruction& instruction, const std::string& name,
                                                uint32_t block_type) {
    const Type* const image = image_at(body, instruction, 0);
    if (image == nullptr)
        return std::nullopt;
    const std::string suffix = block_suffix(body.types(), block_type);
    llvm::Type* const coordinate = body.value(instruction, 1)->getType();
    if (suffix.empty())
        body.refuse(instruction, "a block's elements are 1, 2, 4 or 8 integers, or 16 of at most 16 bits");
    else if (image_type_name(*image) != "image2d_t")
        body.refuse(instruction, "blocks are in 2D images alone");
    else if (coordinate != llvm::FixedVectorType::get(body.builder().getInt32Ty(), 2))
        body.refuse(instruction, "the coordinate is not a vector of two 32-bit integers");
    else
        return image_function(body, name + suffix, *image).add_code("Dv2_i");
    return std::nullopt;
}

void read_image_block(Body& body, const Instruction& instruction) {
    const auto name = image_block_function(body, instruction, "intel_sub_group_block_read", instruction.type);
    if (!name)
        return;
    body.define(instruction, body.call(name->text(), body.result_type(instruction),
                                       {body.value(instruction, 0), body.value(instruction, 1)}, Effect::any));
}

void write_image_block(Body& body, const Instruction& instruction) {
    const uint32_t block = body.type_of(instruction, 2);
    auto name = image_block_function(body, instruction, "intel_sub_group_block_write", block);
    if (!name)
        return;
    name->add(block, Sign::is_unsigned);
    body.call(name->text(), body.builder().getVoidTy(),
              {body.value(instruction, 0), body.value(instruction, 1), body.value(instruction, 2)}, Effect::any);
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
    case spv::OpSubgroupImageBlockReadINTEL: read_image_block(body, instruction); return true;
    case spv::OpSubgroupImageBlockWriteINTEL: write_image_block(body, instruction); return true;
    default: return false;
    }
}

}  // namespace polder::compiler::spirv
