// Checks that a number is within 0 and a bound, as at the edges of a picture or of a padded input: `x >= 0 && x < width` or `x < 0 || x >= width`.
// In a loop, both comparisons become one, of unsigned numbers, with a bound that is computed before the loop: x < max(width, 0).
//
// LLVM does this where it knows that the bound is not negative, which it does not of an argument of the kernel.
//
// Runs after LLVM's passes, which remove a comparison whose result is known. Decision 349 has the measurements.
#pragma once

namespace llvm {
class Function;
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// Returns how many checks have become one comparison. Those of vectors only for processors with AVX-512: others have no comparison of unsigned numbers.
unsigned join_range_checks(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
