// Replaces the sine and the cosine of one angle by sincos, which reduces the angle once.
#pragma once

namespace llvm {
class Module;
}  // namespace llvm

namespace polder::compiler {

// To be called while the built-in functions are still declarations: those that are not called any more are not linked.
void pair_sines(llvm::Module& module);

}  // namespace polder::compiler
