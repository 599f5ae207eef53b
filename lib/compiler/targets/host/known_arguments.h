// Folds what a launch's images and samplers are into a kernel: the format of an image and the bits of a sampler become constants, so that
// reads and writes have no branches on them, no calls, and can run in lanes.
//
// The image functions of the library have code for all formats and samplers. Each one that is called with a known image is copied once for
// each such image (and its constant arguments), and the copy is simplified before it is inlined: a kernel with nine reads of one image
// simplifies the function once. Functions that are calls because they have code for all formats are inlined when their copies are small.
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
