// Replaces the sine and the cosine of one angle by sincos, which reduces the angle once.
#pragma once

namespace llvm {
class Module;
}  // namespace llvm

namespace polder::compiler {

// Must run while the built-in functions are still declarations, so that functions without calls are not linked.
void pair_sines(llvm::Module& module);

}  // namespace polder::compiler
