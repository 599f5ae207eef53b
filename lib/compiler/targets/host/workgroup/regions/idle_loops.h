// Skips loops over work-items in which no work-item has a side effect.
//
// Launches are often larger than what they compute: `if (x >= width || y >= height) return;`. Where all work-items of a
// loop fail such a guard, the loop does nothing, but takes time for each of them. With masks it also addresses memory: a masked access without
// an active lane is slow when its address is not mapped in the process, such as rows after the end of a buffer. So a test before the loop
// decides for all work-items of a row, or of the group.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler::workgroup {

// For loops with the tag of the vectorizer, and the two loops around each, as make_item_loops writes them. Must run before registers are
// promoted: then the only result that a work-item leaves after the loop is a store.
void skip_idle_loops(llvm::Function& function);

}  // namespace polder::compiler::workgroup
