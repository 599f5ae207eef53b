// Atomic additions of floating-point numbers; those of floats in global memory keep subnormal numbers.
#pragma once

#include <llvm/IR/Module.h>

namespace polder::compiler {

// Also makes additions of all subtractions, which PTX does not have. Local memory keeps subnormal numbers, and functions that flush them
// (flush_denormals) keep the instruction. Call it after the optimizations, which find out which pointers refer to local memory, and after
// place_fences: the loops are of relaxed order.
void lower_float_additions(llvm::Module& module);

}  // namespace polder::compiler
