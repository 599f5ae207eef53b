// Logarithms of 0, negative numbers, infinity and NaN, for processors with AVX-512: one instruction (vfixupimm) instead of three comparisons and three choices.
//
// The library's logarithms end with log_of_special() (lib/kernel/cl/real_core.inc): x == 0 ? -inf : x < 0 ? NaN : x < inf ? result : x.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// Runs after all other passes over IR that know comparisons.
void choose_limits_of_logarithms(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
