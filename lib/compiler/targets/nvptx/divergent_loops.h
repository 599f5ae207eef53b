// Keeps loops that work-items leave in different places from being unrolled in part.
//
// Each copy of such a loop's body has exits of its own. Where the work-items of a warp leave through different ones, the processor
// must bring them together again for every exit: a Mandelbrot set unrolled five times took twice the time of the loop as it was
// written. Full unrolling, which removes the loop, comes earlier and stays.
#pragma once

#include <llvm/Passes/PassBuilder.h>

namespace polder::compiler {

void keep_loops_of_many_exits(llvm::PassBuilder& builder);

}  // namespace polder::compiler
