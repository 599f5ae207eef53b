// Copies of a loop over work-items for likely values of a number, which all work-items share (structure_lengths.h).
#pragma once

#include <cstdint>
#include <llvm/ADT/SmallVector.h>

namespace llvm {
class DominatorTree;
class Loop;
class LoopInfo;
class Value;
}  // namespace llvm

namespace polder::compiler::workgroup {

struct Lengths {
    llvm::Value* root = nullptr;  // an integer, computed outside of the loop
    llvm::SmallVector<int64_t, 2> likely;  // its values
};

// False when the loop is not simple. Keeps loops and dominators valid, but LCSSA form and dedicated exits.
bool copy_for_lengths(llvm::Loop& loop, const Lengths& lengths, llvm::LoopInfo& loops, llvm::DominatorTree& dominators);

}  // namespace polder::compiler::workgroup
