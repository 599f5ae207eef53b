// fmin and fmax of OpenCL return the smaller or larger number, and either of two zeros (OpenCL C 6.15.2). LLVM's intrinsics order -0 before
// +0, which takes three of six instructions on x86. Here they may return either zero.
//
// This also works around a defect of LLVM 22 on processors with AVX-512: a scalar llvm.minimumnum that orders zeros returns NaN when one
// operand is known not to be NaN and the other is NaN.
//
// Runs after all other passes over IR, so that no other pass can draw conclusions from the changed intrinsics.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

void ignore_order_of_zeros(llvm::Function& function);

}  // namespace polder::compiler
