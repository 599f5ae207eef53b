// Vector code for calls of cold functions from lanes.
//
// call_rare() makes a function with a loop that calls the callee for one lane after the other: ten or twenty nanoseconds for each sine of a huge
// angle. Where the callee only computes its result, its code becomes vector code for the lanes that are active, as the kernel's own does: one call
// takes about as long as for one lane.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/permutations.h"

#include <llvm/IR/PassManager.h>

namespace polder::compiler::workgroup {

// Rewrites the functions of call_rare() in `module`. `register_words`: elements of 32 bits of a vector register.
void vectorize_rare_calls(llvm::Module& module, unsigned register_words, Permutes permutes,
                          llvm::FunctionAnalysisManager& analyses);

}  // namespace polder::compiler::workgroup
