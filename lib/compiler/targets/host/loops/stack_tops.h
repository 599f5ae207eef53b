// The top of a private stack stays in a register: `while (height > 0) { node = stack[--height]; ... stack[height++] = child; }`.
//
// What an iteration stores last is most often what the next one loads. A processor forwards the number from the store to the load, but that takes longer than what
// walks through small trees compute. LLVM does not do this, because the test for an empty stack stands between the store and the load.
//
// Runs after LLVM's passes, and only without lanes: lanes are at different heights. Decision 364 has the measurements.
#pragma once

namespace llvm {
class Function;
}  // namespace llvm

namespace polder::compiler {

// Returns how many loads have been replaced.
unsigned keep_stack_tops(llvm::Function& function);

}  // namespace polder::compiler
