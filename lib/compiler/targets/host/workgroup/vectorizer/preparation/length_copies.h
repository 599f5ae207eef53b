// Copies of a loop over work-items for likely values of numbers that all work-items share (structure_lengths.h).
#pragma once

#include <cstdint>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>

namespace llvm {
class DominatorTree;
class Loop;
class LoopInfo;
class Value;
}  // namespace llvm

namespace polder::compiler::workgroup {

struct KnownNumber {
    llvm::Value* root = nullptr;  // an integer, computed outside of the loop or an argument
    int64_t value = 0;
};

using KnownNumbers = llvm::SmallVector<KnownNumber, 2>;  // of one copy

// Emits a copy for each of `copies`. False when the loop is not simple. Keeps loops and dominators valid, but LCSSA form and dedicated exits.
bool copy_for_numbers(llvm::Loop& loop, llvm::ArrayRef<KnownNumbers> copies, llvm::LoopInfo& loops,
                      llvm::DominatorTree& dominators);

}  // namespace polder::compiler::workgroup
