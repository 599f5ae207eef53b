// Works around a defect of LLVM 22's LoopVectorize. It changes a load or store under a condition to a masked vector access, and keeps the alignment
// of the single access. The vector begins at the address of the first iteration, which may not fulfil the condition and so may be less aligned.
// For example, of eight iterations over a row of numbers one writes the first member of a structure that is aligned to 64 bytes. On x86
// such a kernel ends with a segmentation fault.
#pragma once

#include <llvm/Passes/PassBuilder.h>

namespace polder::compiler::workgroup {

// Before LoopVectorize, the alignment of accesses under conditions in loops is lowered to their own size.
void add_loop_alignment_pass(llvm::PassBuilder& builder);

}  // namespace polder::compiler::workgroup
