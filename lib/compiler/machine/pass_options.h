// What LLVM's passes must not do, whatever pipeline they are in. Set before the first code is generated, for the whole process's LLVM, which
// is this library's own.
#pragma once

#include <llvm/Transforms/Scalar/LoopIdiomRecognize.h>

namespace polder::compiler {

inline void set_pass_options() {
    // The search for loops that compute a checksum follows all paths through the operands of a loop's values: a loop with the reads of an image
    // in lanes was never compiled. Kernels lose nothing: it wants a loop of eight rounds over the bits of one value.
    llvm::DisableLIRP::HashRecognize = true;
}

}  // namespace polder::compiler
