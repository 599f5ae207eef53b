// fma of halves on processors with AVX-512: the float around the exact sum whose last bit is set, from two fused operations that round down and up.
//
// The library has a dozen operations for it (fma in lib/kernel/cl/half_math.inc): a fused one, the error of its sum, and a step towards zero.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// Vectors of 16 floats, or a multiple of them. Runs after all other passes over IR that know floats.
void round_sums_to_odd(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
