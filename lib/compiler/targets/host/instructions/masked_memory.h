// Replaces masked loads and stores for which the processor has no instruction (such as gathers and scatters of 8 and 16-bit numbers)
// by one access for each lane. LLVM would make a branch and two blocks for each lane. Here a lane that is masked off
// reads or writes a variable on the stack instead: there is no branch, and a third of the code.
//
// Runs after all other passes over IR.
#pragma once

#include <cstdint>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Function.h>

namespace polder::compiler {

// How bytes of all lanes are loaded where no lane is masked off and the processor gathers words. A gather that is many instructions inside takes longer
// than a load and an insertion for each lane.
enum class ByteGathers : uint8_t { in_words, one_by_one };

void lower_masked_memory(llvm::Function& function, const llvm::TargetTransformInfo& target,
                         ByteGathers bytes = ByteGathers::in_words);

}  // namespace polder::compiler
