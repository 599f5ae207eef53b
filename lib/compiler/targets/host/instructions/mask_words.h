// Keeps masks of lanes in vectors of words between basic blocks, on processors without mask registers.
//
// A mask is a vector of bits. LLVM selects instructions for one block at a time and passes such a vector to the next block in 128 bits, so eight
// lanes of 32 bits have a mask of eight times 16 bits there: each block packs its masks and unpacks them again, in a loop under a mask some ten
// instructions each time. A mask that is passed as words as wide as the lanes' values is used as it is.
//
// Runs after all other passes over IR, which would change the words to bits again.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

void pass_masks_as_words(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
