// Which processors take long for small results, and for roots.
#pragma once

#include <llvm/Target/TargetMachine.h>

namespace polder::compiler {

// Processors other than AMD's take about 150 cycles for an operation whose result is subnormal, or is zero because it is smaller than that.
inline bool are_small_results_slow(const llvm::TargetMachine& machine) {
    return !machine.getTargetCPU().starts_with("znver");
}

// Where the root of a register of 512 bits takes longer than its estimate and a step of Newton's method.
inline bool has_slow_roots(const llvm::TargetMachine& machine) { return !machine.getTargetCPU().starts_with("znver"); }

}  // namespace polder::compiler
