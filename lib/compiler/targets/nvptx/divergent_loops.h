// Reduces the places where the work-items of a warp diverge, in loops that they leave at different times.
//
// Where they leave a loop through different exits, the processor must let them converge again for each exit. So conditions
// that are cheap to compute are joined (`i < n && x < y` is one branch, both sides computed), as NVIDIA's own compiler does; and a
// loop that still has several exits is not unrolled in part, which would give each copy its own. Full unrolling, which
// removes the loop, is still allowed, and so is unrolling by the driver's assembler.
#pragma once

#include <llvm/Passes/PassBuilder.h>

namespace polder::compiler {

void add_divergent_loop_passes(llvm::PassBuilder& builder);

}  // namespace polder::compiler
