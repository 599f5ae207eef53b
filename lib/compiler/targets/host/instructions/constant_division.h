// Divisions of vectors of 64-bit integers by constants, such as `seconds / 86400` in lanes.
//
// LLVM makes products of them only where the processor multiplies vectors of 64 bits to 128. No x86 processor does, so each element would be taken out
// of its vector, multiplied and put back. Here the upper half of the product is computed from four products of 32 bits.
//
// For processors with registers of at least 256 bits. Runs after all other passes over IR that know integer divisions.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

void multiply_for_divisions(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
