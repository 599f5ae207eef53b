// Replaces powers with a constant exponent by a few operations that keep the specification's bounds of errors: pow, powr, pown and
// rootn (with native_powr and half_powr) of small whole exponents, of halves, and of 2 to a variable.
#pragma once

namespace llvm {
class Module;
}  // namespace llvm

namespace polder::compiler {

// Must run while the built-in functions are still declarations, so that functions without calls are not linked.
void fold_powers(llvm::Module& module);

}  // namespace polder::compiler
