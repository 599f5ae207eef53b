// Values that a branch chooses which is the same for all work-items, such as the centre of a filter by whether its length, an argument, is odd.
//
// Behind a guard, `if (x < width)`, such a branch is in masked code. There a value that two blocks bring is chosen for each lane, and all that is computed from it
// varies: counts of loops, rows of an image. Where the condition and both values do not change in the loop over work-items, one is chosen before the loop.
#pragma once

namespace llvm {
class Loop;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Replaces such values of the loop, which must have a preheader; else nothing happens. Branches and blocks stay.
void choose_before(llvm::Loop& loop);

}  // namespace polder::compiler::workgroup
