// The form of a function that the vectorizer handles: no switches, canonical loops, addresses of private variables where they are used, and
// explicit vectors split into their elements where they do not stay whole.
#pragma once

#include "targets/host/workgroup/vectorizer/estimates/explicit_vectors.h"

#include <llvm/IR/PassManager.h>

namespace polder::compiler::workgroup {

void canonicalise(llvm::Function& function, ExplicitVectors vectors, llvm::FunctionAnalysisManager& analyses);

}  // namespace polder::compiler::workgroup
