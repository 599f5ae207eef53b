// native_sqrt of vectors on Intel's processors, whose divider is busy with roots of 512 bits for long: the number times an estimate of the reciprocal root
// and one step of Newton's method (reciprocals.h), within 2 ulp. Zeros and infinity are their own roots, and so are subnormal numbers, which native
// functions may take for zeros: products with them take some 150 cycles. AMD's processors compute a root as fast as the product.
//
// A call of the root whose reciprocal is permitted, and nothing else, and by which nothing is divided, is native_sqrt (root_wide.inc).
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// Before divide_by_estimates, which makes the estimates.
void estimate_native_roots(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
