// Leaves out loops over work-items in which no work-item has an effect.
//
// Launches are often larger than what they compute: `if (x >= width || y >= height) return;`. A loop whose work-items all fail such a
// guard did nothing for each of them, and under masks it still addressed memory: an access without an active lane is slow when its
// address is not the process's, as rows behind the end of a buffer are. A test before the loop now decides this for all work-items
// of a row, or of the group.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler::workgroup {

// For loops with the tag of the vectorizer, and the two loops around each, as make_item_loops writes them: before registers are
// promoted, so that all that a work-item leaves behind is a store.
void skip_idle_loops(llvm::Function& function);

}  // namespace polder::compiler::workgroup
