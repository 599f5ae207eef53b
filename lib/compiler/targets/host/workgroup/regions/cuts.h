// Cuts: the places where all work-items of a group meet. A cut is a block that contains only a terminator. It is executed
// once per work-group, between the regions, which are executed once per work-item.
//
// Every barrier is a cut. A branch with a uniform condition is one as well when it decides which barrier (or the
// return) comes next: then loops and conditionals around barriers run once per work-group, outside of the loops over
// work-items. Such a branch is a cut only where all work-items that have not returned arrive together.
#pragma once

#include "targets/host/workgroup/work_items/uniformity.h"

#include <llvm/ADT/SetVector.h>

namespace polder::compiler::workgroup {

using Cuts = llvm::SetVector<llvm::BasicBlock*>;

// First step: puts every barrier into its own block, then removes the barriers. Returns these blocks. The caller then analyses the
// uniformity and calls `place_cuts`.
[[nodiscard]] Cuts split_at_barriers(llvm::Function& function);

// Second step: adds the uniform branches that decide between barriers. Afterwards the only predecessor of each successor of a
// cut is that cut, and the successors have no phis.
void place_cuts(llvm::Function& function, const Uniformity& uniformity, Cuts& cuts);

}  // namespace polder::compiler::workgroup
