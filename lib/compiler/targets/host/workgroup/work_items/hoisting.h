// Moves computations that are the same for all work-items before the loops over work-items.
#pragma once

#include "uniformity.h"

namespace polder::compiler::workgroup {

// Whether `instruction` may be executed earlier than written, or although it would not have been executed at all.
[[nodiscard]] bool is_movable(const llvm::Instruction& instruction);

// Moves uniform instructions without side effects, whose operands are available there, to the end of `prologue`. They then run
// once per work-group.
void hoist_uniform_values(llvm::Function& function, llvm::BasicBlock& prologue, const Uniformity& uniformity);

}  // namespace polder::compiler::workgroup
