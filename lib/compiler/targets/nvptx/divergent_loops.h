// Fewer places where the work-items of a warp part, in loops that they leave at different times.
//
// Where they leave a loop through different exits, the processor must bring them together again for each of them. So conditions
// that are cheap to compute are joined (`i < n && x < y` is one branch, both sides computed), as NVIDIA's own compiler does; and a
// loop that still has several exits is not unrolled in part, which would give each copy its own. Full unrolling, which
// removes the loop, stays, and so does what the driver's assembler unrolls.
#pragma once

#include <llvm/Passes/PassBuilder.h>

namespace polder::compiler {

void add_divergent_loop_passes(llvm::PassBuilder& builder);

}  // namespace polder::compiler
