// Loads again what was loaded before a loop over work-items, where the values do not fit into registers.
//
// What all work-items load from one place, as the elements of a tile in local memory, LLVM loads once, before the loop over the rows of a
// group. A product with 16 sums for each work-item uses 256 elements: as vectors of 16 equal lanes they fill 16 KiB of stack, written before
// the loop and read in each round of it. An instruction that multiplies reads the one element from the tile and repeats it in all lanes at no
// cost. This undoes the hoisting (rematerialization: P. Briggs, K. Cooper, L. Torczon, 1992), which LLVM's register
// allocator does only for constants.
//
// Runs after LLVM's passes over IR.
#pragma once

#include <llvm/IR/PassManager.h>

namespace polder::compiler::workgroup {

// Marks the loops over work-items, and over rows of them, in their llvm.loop metadata.
inline constexpr const char* items_tag = "polder.items";

// Returns the number of loads that moved.
unsigned load_in_loops(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace polder::compiler::workgroup
