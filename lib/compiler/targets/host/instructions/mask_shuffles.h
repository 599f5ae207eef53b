// Comparisons of vectors whose elements are shuffled afterwards, such as those of float3 in lanes: the 48 values of 16 work-items lie next to each
// other, and each component has every third.
//
// LLVM compares first and shuffles the bits of the result, since that is one shuffle instead of two. On x86 bits lie in a mask register, which has no
// shuffles, so that code generation moves them one by one. Here the values are shuffled, and compared as they are needed.
//
// Runs after all other passes over IR that may join shuffles.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

void shuffle_before_comparing(llvm::Function& function);

}  // namespace polder::compiler
