// Moves products out of the addresses that lanes have in a loop.
//
// In a loop of the kernel, the index of a lane is often a number that stays the same, plus a number that all lanes share, such as a counter:
// `(y + k) * width + x`. LLVM computes such a product in each iteration: its loop strength reduction knows only scalars. The product of a sum is a
// sum of products (modulo a power of two), so the vector `y * width + x` is computed before the loop, and `k * width` once for all lanes.
// A vector of 64-bit products takes three instructions and 15 cycles on Intel's processors, seven instructions without AVX-512.
//
// Where the same number is added on both sides of a comparison, only the vectors that stay the same are compared, before the loop. Lanes whose
// addresses were neighbours in the first iteration are neighbours in all (likely_steps.cpp has these comparisons). A vector that grows by
// the same vector in each iteration has products that do so, too.
//
// Runs after LLVM's passes over IR: before them, a product of scalars would lose its range.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

// Returns whether `function` was changed.
bool move_out_lane_products(llvm::Function& function);

}  // namespace polder::compiler
