// What may be computed once per work-group, before its work-items.
#pragma once

#include "uniformity.h"

namespace polder::compiler::workgroup {

// Whether `instruction` may be executed earlier and more often than written.
[[nodiscard]] bool is_movable(const llvm::Instruction& instruction);

// Moves what is uniform, pure and computable there to the end of `prologue`, so that it is computed
// once per work-group.
void hoist_uniform_values(llvm::Function& function, llvm::BasicBlock& prologue, const Uniformity& uniformity);

} // namespace polder::compiler::workgroup
