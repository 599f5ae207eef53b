// Moves loads from before a loop over work-items back into the loop, where the loaded values do not fit into registers.
//
// LLVM loads a value that all work-items need, such as an element of a tile in local memory, once, before the loop over the rows of a group.
// A matrix product with 16 sums for each work-item uses 256 such elements. As vectors of 16 equal lanes they fill 16 KiB of stack, which the
// loop reads in each iteration. But a multiplication can read one element from the tile and repeat it in all lanes at no cost. This pass
// undoes the hoisting (rematerialization: P. Briggs, K. Cooper, L. Torczon, 1992). LLVM's register allocator does so
// only for constants.
//
// Runs after LLVM's passes over IR.
#pragma once

#include <llvm/IR/PassManager.h>

namespace polder::compiler::workgroup {

// Returns the number of loads that moved.
unsigned load_in_loops(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace polder::compiler::workgroup
