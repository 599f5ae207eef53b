// Which processors take long for results below the smallest normal number.
#pragma once

#include <llvm/Target/TargetMachine.h>

namespace polder::compiler {

// Processors other than AMD's take about 150 cycles for an operation whose result is subnormal, or is zero because it is smaller than that.
inline bool are_small_results_slow(const llvm::TargetMachine& machine) {
    return !machine.getTargetCPU().starts_with("znver");
}

}  // namespace polder::compiler
