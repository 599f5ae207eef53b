// Atomic operations that often change nothing, such as the minimum of a distance and a longer one, do not write then: a load and a comparison come
// before the locked instructions, which take ten times as long and move the cache line to one processor.
//
// Only minima, maxima, `and` and `or` of integers, of relaxed order: one that writes the value it has read is a load for all other work-items.
// Operations of stronger orders are barriers, too, and stay.
#pragma once

namespace llvm {
class Function;
}  // namespace llvm

namespace polder::compiler::workgroup {

void skip_unchanging_atomics(llvm::Function& function);

}  // namespace polder::compiler::workgroup
