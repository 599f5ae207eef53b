// Guards integer divisions: on the host a division by zero, or of the smallest integer by -1, would end the process. The
// result is undefined in OpenCL C (6.3). After this pass x / 0 == x, x % 0 == 0, and INT_MIN / -1 == INT_MIN. Only where an unsigned quotient
// is compared with 0, x / 0 is not 0, as on GPUs.
//
// Divisions whose divisor is known to be neither 0 nor -1 are not changed.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

void guard_divisions(llvm::Function& function);

}  // namespace polder::compiler
