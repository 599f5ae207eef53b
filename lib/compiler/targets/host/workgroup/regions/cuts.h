// Where the work-items of a group meet: *cuts* are blocks that hold nothing but a terminator and are executed
// once per work-group, between the regions that are executed once per work-item.
//
// Every barrier is a cut. So is a branch with a uniform condition that decides which barrier (or the
// return) comes next: executed once, it keeps loops and conditionals around barriers out of the
// work-item loops. Such a branch is a cut only where all work-items that still run arrive together.
#pragma once

#include "targets/host/workgroup/uniformity.h"

#include <llvm/ADT/SetVector.h>

namespace polder::compiler::workgroup {

using Cuts = llvm::SetVector<llvm::BasicBlock*>;

// Puts every barrier into a block of its own, the first half of placing cuts; afterwards analyse the
// uniformity, then call `place_cuts`. Returns these blocks, without the barriers.
[[nodiscard]] Cuts split_at_barriers(llvm::Function& function);

// Adds the uniform branches that decide between barriers. Afterwards every successor of a cut is a block
// with that cut as its only predecessor, and without phis.
void place_cuts(llvm::Function& function, const Uniformity& uniformity, Cuts& cuts);

} // namespace polder::compiler::workgroup
