// Takes the addresses of all lanes out of their vector before the first of them is used, where each lane changes what is at its address.
//
// Lanes that may change the same element, as those of a histogram do, load, compute and store one after the other. On Zen 4 each such lane took
// 17 cycles when its address was taken out of a vector register just before; with all addresses in general registers first, two. Loads alone or
// stores alone, and addresses that were never in a vector, do not have this cost.
//
// An empty assembler statement keeps each address where it was taken. Runs after all other passes over IR, which would move it back.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

void take_addresses_first(llvm::Function& function);

}  // namespace polder::compiler
