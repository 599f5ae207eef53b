// Reciprocals of numbers above 2^126 are subnormal, which takes about 150 cycles on Intel's processors for each. native_recip of a single number may
// have any error, and gives a zero with the sign of the number there. Programs use such reciprocals for distances that no work-item has:
// miniBUDE multiplies by native_recip(-FLT_MAX).
//
// Vectors keep what they have (reciprocals.h): a test of the estimate would be further work for each.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// Before divide_by_estimates, which takes vectors.
void flush_huge_reciprocals(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
