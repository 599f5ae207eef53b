// Changes a loop over work-items so that it can be planned (lane_plan).
#pragma once

namespace llvm {
class Loop;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Moves out what is the same for all work-items, passes values that are used behind the loop in memory, and separates its counter.
void prepare_loop(llvm::Loop& loop);

// When the kernel computes its id + 1, LLVM merges this sum with the loop's counter. The plan needs a counter without other uses.
void separate_counter(llvm::Loop& loop);

}  // namespace polder::compiler::workgroup
