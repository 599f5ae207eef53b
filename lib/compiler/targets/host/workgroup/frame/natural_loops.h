// Loops with several entries become natural loops, which have one. The vectorizer and the analysis of uniformity know no others.
//
// A source may have such a loop (`goto`), and a region has one when it begins at a barrier in a loop, from where it branches to several
// places of that loop:
//
//   for (...) { if (c) { barrier(); if (d) continue; } rest; }    // after the barrier: `rest` or the next iteration
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

namespace llvm {
class BasicBlock;
class Function;
class TargetMachine;
}  // namespace llvm

namespace polder::compiler::workgroup {

// The whole function. When it has such loops, its switches become branches.
void make_loops_natural(llvm::Function& function, llvm::TargetMachine* target);

// Only within natural loops whose headers are `chosen`.
void make_loops_natural_within(llvm::function_ref<bool(const llvm::BasicBlock&)> chosen, llvm::Function& function,
                               llvm::TargetMachine* target);

}  // namespace polder::compiler::workgroup
