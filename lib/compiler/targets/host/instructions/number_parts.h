// Exponents and mantissas of positive numbers, for processors with AVX-512: one instruction each (vgetexp, vgetmant), which knows subnormal numbers.
//
// logb(x) is that of the exponent alone.
//
// The library has them as operations on bits and LLVM's ldexp: polder_exponent(x) and polder_mantissa(x) of lib/kernel/cl/wide_core.inc, as
// polder-retarget-builtins writes them.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// Runs after all other passes over IR that know shifts and ldexp.
void split_numbers_by_instructions(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
