// compiler::inspect_spirv: the specialization constants of a module that was not validated yet.
#include "binary.h"

#include <compiler/spirv.h>

#include <algorithm>
#include <map>

namespace polder::compiler {
namespace {

uint32_t bytes_of(const spirv::Instruction& constant, const std::map<uint32_t, uint32_t>& widths) {
    if (constant.opcode != spv::OpSpecConstant)
        return 1;
    const auto found = widths.find(constant.type);
    return found == widths.end() ? 0 : found->second / 8;
}

} // namespace

Result<std::vector<SpecializationConstant>> inspect_spirv(std::span<const std::byte> bytes) {
    POLDER_ASSIGN(binary, spirv::Binary::read(bytes));
    std::map<uint32_t, uint32_t> spec_ids, widths;
    std::vector<SpecializationConstant> constants;
    for (const spirv::Instruction& instruction : binary.instructions()) {
        switch (instruction.opcode) {
        case spv::OpDecorate:
            if (instruction.operand(1) == spv::DecorationSpecId)
                spec_ids[instruction.operand(0)] = instruction.operand(2);
            break;
        case spv::OpTypeInt:
        case spv::OpTypeFloat: widths[instruction.result] = std::min(instruction.operand(0), 64u); break;
        case spv::OpSpecConstantTrue:
        case spv::OpSpecConstantFalse:
        case spv::OpSpecConstant:
            if (const auto id = spec_ids.find(instruction.result); id != spec_ids.end())
                constants.push_back({id->second, bytes_of(instruction, widths)});
            break;
        default: break;
        }
    }
    return constants;
}

} // namespace polder::compiler
