// Explicit vectors whose elements are loaded one by one from a small constant table, in code without lanes: permutations of registers that hold the table
// (vectorizer/analysis/vectors_of_table.h), as in lanes.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// Runs after LLVM's passes, which may yet split explicit vectors into their elements.
void look_up_vectors(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
