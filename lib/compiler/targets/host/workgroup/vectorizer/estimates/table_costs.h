// The cost of loads that become permutations of registers behind LLVM's passes (register_tables.h).
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_shape.h"
#include "targets/host/workgroup/vectorizer/analysis/permutations.h"

#include <optional>

namespace polder::compiler::workgroup {

// The instructions with which all lanes load their elements of a small table, wherever it is; nothing where they gather them.
[[nodiscard]] std::optional<double> cost_in_registers(const llvm::LoadInst& load, const LaneShapes& shapes,
                                                      Permutes permutes, unsigned lanes);

}  // namespace polder::compiler::workgroup
