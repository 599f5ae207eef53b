// fmin and fmax of OpenCL return the smaller or larger number, and either of two zeros (OpenCL C 6.15.2). LLVM's intrinsics order -0 before
// +0, which takes three of six instructions on x86. Here they may return either zero.
//
// This also works around a defect of LLVM 22 on processors with AVX-512: a scalar minimumnum that orders zeros, of a value that is known to be
// no NaN and of a NaN, is compiled to the NaN.
//
// Runs after all other passes over IR, so that no other pass concludes anything from it.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

void ignore_order_of_zeros(llvm::Function& function);

}  // namespace polder::compiler
