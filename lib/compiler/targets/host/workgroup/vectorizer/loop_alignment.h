// Works around a defect of LLVM 22's LoopVectorize: a load or store under a condition becomes one of a vector under a mask with the alignment that
// the single one had. The vector begins where the first iteration would access memory, and that iteration may not fulfil the condition: one
// of eight writes the first member of a structure that is aligned to 64 bytes, and the eight places are a row of numbers. x86 ends
// such a kernel with a segmentation fault.
#pragma once

#include <llvm/Passes/PassBuilder.h>

namespace polder::compiler::workgroup {

// Before LoopVectorize, accesses under conditions in loops become as aligned as their own size at most.
void add_loop_alignment_pass(llvm::PassBuilder& builder);

}  // namespace polder::compiler::workgroup
