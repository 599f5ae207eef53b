// One pass over the module stores each annotation by the id that it describes; group decorations are copied to their targets.
#include "annotations.h"

#include <algorithm>

namespace polder::compiler::spirv {
namespace {

std::span<const uint32_t> from(const Instruction& instruction, size_t index) {
    return instruction.operands.subspan(std::min(index, instruction.operands.size()));
}

template <class Map>
const typename Map::mapped_type& find_or_empty(const Map& map, uint32_t id) {
    static const typename Map::mapped_type empty;
    const auto found = map.find(id);
    return found == map.end() ? empty : found->second;
}

}  // namespace

Annotations::Annotations(const Binary& binary) {
    for (const Instruction& instruction : binary.instructions()) {
        if (instruction.opcode == spv::OpFunction)
            break;
        add(instruction);
    }
    for (const Instruction& instruction : binary.instructions())
        if (instruction.opcode == spv::OpGroupDecorate)
            apply_group(instruction);
}

void Annotations::add(const Instruction& instruction) {
    const uint32_t target = instruction.operand(0);
    switch (instruction.opcode) {
    case spv::OpName: names_[target] = instruction.text(1); break;
    case spv::OpString: strings_[instruction.result] = instruction.text(0); break;
    case spv::OpExtInstImport: sets_[instruction.result] = instruction.text(0); break;
    case spv::OpEntryPoint: entry_points_.push_back({instruction.operand(1), instruction.text(2)}); break;
    case spv::OpDecorate:
    case spv::OpDecorateId:
    case spv::OpDecorateString:
        decorations_[target].push_back({static_cast<spv::Decoration>(instruction.operand(1)), from(instruction, 2)});
        break;
    case spv::OpExecutionMode:
    case spv::OpExecutionModeId:
        execution_modes_[target].push_back({static_cast<spv::ExecutionMode>(instruction.operand(1)),
                                            instruction.opcode == spv::OpExecutionModeId, from(instruction, 2)});
        break;
    default: break;
    }
}

void Annotations::apply_group(const Instruction& instruction) {
    const std::vector<Decoration> group = decorations(instruction.operand(0));
    for (const uint32_t target : from(instruction, 1)) {
        std::vector<Decoration>& place = decorations_[target];
        place.insert(place.end(), group.begin(), group.end());
    }
}

std::string Annotations::name(uint32_t id) const { return find_or_empty(names_, id); }
std::string Annotations::string(uint32_t id) const { return find_or_empty(strings_, id); }
std::string Annotations::instruction_set(uint32_t id) const { return find_or_empty(sets_, id); }

const std::vector<Decoration>& Annotations::decorations(uint32_t id) const { return find_or_empty(decorations_, id); }

std::optional<Decoration> Annotations::decoration(uint32_t id, spv::Decoration kind) const {
    const std::vector<Decoration>& all = decorations(id);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Decoration& each) { return each.kind == kind; });
    return found == all.end() ? std::nullopt : std::optional{*found};
}

std::optional<Linkage> Annotations::linkage(uint32_t id) const {
    const auto found = decoration(id, spv::DecorationLinkageAttributes);
    if (!found)
        return std::nullopt;
    const Instruction words{.operands = found->operands};
    size_t next = 0;
    std::string name = words.text(0, &next);
    return Linkage{std::move(name), static_cast<spv::LinkageType>(words.operand(next))};
}

bool Annotations::has_function_attribute(uint32_t id, spv::FunctionParameterAttribute attribute) const {
    const std::vector<Decoration>& all = decorations(id);
    return std::any_of(all.begin(), all.end(), [&](const Decoration& each) {
        return each.kind == spv::DecorationFuncParamAttr && each.operand(0) == static_cast<uint32_t>(attribute);
    });
}

bool Annotations::is_entry_point(uint32_t function) const {
    return std::any_of(entry_points_.begin(), entry_points_.end(),
                       [&](const EntryPoint& each) { return each.function == function; });
}

const std::vector<ExecutionMode>& Annotations::execution_modes(uint32_t function) const {
    return find_or_empty(execution_modes_, function);
}

std::optional<ExecutionMode> Annotations::execution_mode(uint32_t function, spv::ExecutionMode kind) const {
    for (const ExecutionMode& mode : execution_modes(function))
        if (mode.kind == kind)
            return mode;
    return std::nullopt;
}

std::optional<std::string> Annotations::string_with_prefix(std::string_view prefix) const {
    for (const auto& [id, text] : strings_)
        if (text.starts_with(prefix))
            return text.substr(prefix.size());
    return std::nullopt;
}

}  // namespace polder::compiler::spirv
