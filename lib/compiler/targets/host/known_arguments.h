// Specialises a kernel for a launch's images and samplers: the format of an image and the bits of a sampler become constants, so that
// reads and writes need no branches on them and no calls, and can run in lanes.
//
// The image functions of the library have code for all formats and samplers. Each one that is called with a known image is copied once for
// each such image (and its constant arguments), and the copy is simplified before it is inlined: for a kernel with nine reads of one image
// the function is simplified once. Functions with code for all formats are too large to inline, but their copies are inlined when small.
//
// Runs on a module of one kernel, before anything is inlined. One thread.
#pragma once

#include <compiler/compiler.h>

namespace llvm {
class Function;
}  // namespace llvm

namespace polder::compiler {

// `known`: see CodeVersion. Nothing changes when it is empty.
void fold_known_arguments(llvm::Function& kernel, std::span<const KnownArgument> known);

}  // namespace polder::compiler
