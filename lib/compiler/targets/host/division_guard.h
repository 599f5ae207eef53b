// Makes integer division harmless: on the host a division by zero, or of the smallest integer by -1, would end
// the process. OpenCL leaves the result open (OpenCL C 6.3); here x / 0 == x and x % 0 == 0, and
// INT_MIN / -1 == INT_MIN.
//
// Divisions whose divisor is known to be neither are left alone.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

void guard_divisions(llvm::Function& function);

} // namespace polder::compiler
