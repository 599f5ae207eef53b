// Replaces gathers from small tables by permutations of registers that hold the whole table: up to 256 bytes in four registers of 512 bits, or up to 64
// in four of 128.
//
// A gather of 16 elements takes 20 to 30 cycles, a permutation one or two. A table qualifies when all lanes have the same base, and the known
// bits of their indices keep them within 256 bytes: an index that is a byte, or `i & 63` for words. The table may end before that. So
// the code asks whether the registers' bytes lie in one page, to which an active lane's element belongs; else it gathers.
//
// Registers of 512 bits need AVX-512; for bytes also VBMI. Those of 128 bits have bytes only. Runs after LLVM's passes, before lower_masked_memory.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

void permute_small_tables(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
