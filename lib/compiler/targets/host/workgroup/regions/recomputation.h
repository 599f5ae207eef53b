// Which values are computed again behind a barrier instead of being kept: those that a few instructions compute that cost less than a load.
#pragma once

#include <llvm/IR/Instruction.h>

namespace polder::compiler::workgroup {

// In instructions.
inline constexpr int recompute_cost_max = 10;

// Integer and address arithmetic that costs less than a load.
[[nodiscard]] bool is_cheap_to_recompute(const llvm::Instruction& instruction);

}  // namespace polder::compiler::workgroup
