// Works around a defect of LLVM 22's LoopVectorize. In a loop whose accesses are marked as parallel it checks no dependences. But the mark says that
// different iterations are independent, not the accesses of one iteration. Interleave groups, which are elements of a structure, are stored where the last
// of them is and loaded where the first one is: across accesses of the same iteration to the same bytes.
#pragma once

#include <llvm/Passes/PassBuilder.h>

namespace polder::compiler::workgroup {

// Before LoopVectorize, loops lose the mark in which an interleave group could move across an access of the same bytes. LLVM then checks all
// dependences, if need be at run time.
void add_parallel_access_pass(llvm::PassBuilder& builder);

}  // namespace polder::compiler::workgroup
