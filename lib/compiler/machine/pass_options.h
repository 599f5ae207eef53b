// Switches off parts of LLVM's passes in all pipelines. Must be called before the first code is generated. It affects all users of this LLVM,
// which is Polder's own.
#pragma once

#include <llvm/Transforms/Scalar/LoopIdiomRecognize.h>

namespace polder::compiler {

inline void set_pass_options() {
    // The search for loops that compute a checksum follows all paths through the operands of a loop's values. For a loop with image reads in
    // lanes it did not end. Kernels do not need it: it looks for a loop of eight iterations over the bits of one value.
    llvm::DisableLIRP::HashRecognize = true;
}

}  // namespace polder::compiler
