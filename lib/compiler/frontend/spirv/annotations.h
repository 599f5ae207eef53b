// The parts of a module that describe ids without defining them: names, decorations, entry points, execution modes,
// capabilities, strings.
//
// Collected in one pass over a valid module, then constant. Views point into the Binary.
#pragma once

#include "binary.h"

#include <map>
#include <optional>
#include <utility>

namespace polder::compiler::spirv {

struct Decoration {
    spv::Decoration kind = spv::DecorationMax;
    std::span<const uint32_t> operands;
    [[nodiscard]] uint32_t operand(size_t index) const { return index < operands.size() ? operands[index] : 0; }
};

struct EntryPoint {
    uint32_t function = 0;
    std::string name;
};

struct ExecutionMode {
    spv::ExecutionMode kind = spv::ExecutionModeMax;
    bool are_ids = false;  // the operands are ids of constants
    std::span<const uint32_t> operands;
};

struct Linkage {
    std::string name;
    spv::LinkageType type = spv::LinkageTypeMax;
};

class Annotations {
public:
    explicit Annotations(const Binary& binary);

    [[nodiscard]] std::string name(uint32_t id) const;
    [[nodiscard]] const std::vector<Decoration>& decorations(uint32_t id) const;
    [[nodiscard]] std::optional<Decoration> decoration(uint32_t id, spv::Decoration kind) const;
    [[nodiscard]] bool has(uint32_t id, spv::Decoration kind) const { return decoration(id, kind).has_value(); }
    [[nodiscard]] std::optional<Linkage> linkage(uint32_t id) const;
    [[nodiscard]] bool has_function_attribute(uint32_t id, spv::FunctionParameterAttribute attribute) const;

    [[nodiscard]] const std::vector<EntryPoint>& entry_points() const { return entry_points_; }
    [[nodiscard]] bool is_entry_point(uint32_t function) const;
    [[nodiscard]] const std::vector<ExecutionMode>& execution_modes(uint32_t function) const;
    [[nodiscard]] std::optional<ExecutionMode> execution_mode(uint32_t function, spv::ExecutionMode kind) const;
    // The OpString that begins with `prefix`, without it; LLVM and its translator keep kernels' argument types so.
    [[nodiscard]] std::optional<std::string> string_with_prefix(std::string_view prefix) const;
    [[nodiscard]] std::string string(uint32_t id) const;
    // The name of an OpExtInstImport; empty when the id is none.
    [[nodiscard]] std::string instruction_set(uint32_t id) const;

private:
    void add(const Instruction& instruction);
    void apply_group(const Instruction& instruction);

    std::map<uint32_t, std::string> names_, strings_, sets_;
    std::map<uint32_t, std::vector<Decoration>> decorations_;
    std::vector<EntryPoint> entry_points_;
    std::map<uint32_t, std::vector<ExecutionMode>> execution_modes_;
};

} // namespace polder::compiler::spirv
