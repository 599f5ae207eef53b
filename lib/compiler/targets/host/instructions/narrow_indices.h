// Indices of gathers in numbers of 32 bits, of which a register holds twice as many as of 64.
//
// For one work-item LLVM computes `table[(x * 3 + y) >> 8]` of shorts in 64 bits: addresses need that, and an extension is left out. In lanes, everything in it
// takes two registers, and the gather is two. Where all parts come from narrow numbers, and the index is known to be small, 32 bits are enough.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

// Returns how many indices have become narrow. Behind LLVM's passes, which would make them wide again.
unsigned narrow_gather_indices(llvm::Function& function);

}  // namespace polder::compiler
