// Which values that live across cuts share a place in memory.
//
// A region loads such values when it is entered, and stores those that it computed when it ends, behind all loads of the same work-item. So two values
// need places of their own only if both are live at one cut. A variable that changes between hundreds of barriers has one place then, instead of one for each change,
// and the function has one address for it.
#pragma once

#include "cuts.h"
#include "liveness.h"

#include <llvm/ADT/STLFunctionalExtras.h>

namespace polder::compiler::workgroup {

// The value whose place each of `values` takes: its own, or one before it in their order that `fits`.
[[nodiscard]] llvm::DenseMap<const llvm::Instruction*, const llvm::Instruction*>
share_places(llvm::ArrayRef<llvm::Instruction*> values, const Cuts& cuts, const Liveness& liveness,
             llvm::function_ref<bool(const llvm::Instruction&, const llvm::Instruction&)> fits);

}  // namespace polder::compiler::workgroup
