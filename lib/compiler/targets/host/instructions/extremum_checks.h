// Atomic minima and maxima: a comparison with what the memory holds first. Where the value does not change it, which is the usual case, it is not written: an
// exchange takes about 20 cycles, and takes the memory from other cores.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

// Of such operations that need not release anything.
void check_extrema(llvm::Function& function);

}  // namespace polder::compiler
