// Computes fmin and fmax of vectors as a minimum under a mask, which takes two instructions, and of which only one waits for the chain
// that ends in the other operand, as in `least = fmin(least, ...)`.
//
// LLVM takes the minimum, compares the result with itself, and blends: three instructions, each of which waits for the one before. On an
// Intel server processor these are nine cycles for each fmin of a chain, and four with the mask.
//
// For x86 with AVX. Runs after all other passes over IR.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

void mask_minimums(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
