// Halves on processors without conversions of them (F16C), as operations on whole numbers, and on vectors of them.
//
// LLVM calls a function of libgcc for each element, which takes 5 to 10 ns, and 40 to 400 where the half is subnormal: it raises the exception of that in the
// old floating-point unit.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// Replaces conversions from and to floats and doubles; sums, products, quotients and comparisons of halves become those of floats. Runs after all other
// passes over IR that know conversions.
void convert_halves_as_words(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
