// Divisions by 0 and by infinity, and by their roots, in code whose divisions may be approximate (-cl-fast-relaxed-math).
//
// LLVM computes such a division of a vector of floats on x86 from the processor's estimate of the reciprocal and one step of Newton's
// method, whose error term 1 - divisor * estimate is NaN for 0 and infinity, where the estimate itself is right. So
// 1 / (1 + exp(-x)) is NaN below -88. The option permits it, but programs made for GPUs expect 0 there. Here the error term is
// limited by the minimum instruction of x86, which returns its second operand, the limit, if the first is NaN.
//
// Divisions by a square root are products with the estimate of the reciprocal root, as LLVM's are, whose step is limited in the same way.
// So are divisions by products with a root, also of single numbers; LLVM's may be NaN at 0, and by a * sqrt(a) wherever a * a * a overflows.
//
// A quotient is within 2.5 ULP for divisors from 2^-126 to 2^126, as the specification wants. Where the reciprocal of a divisor that is not 0
// is infinite, the quotient is so; without AVX-512, for all denormal divisors and their roots, which the processor's estimates take for 0.
//
// Runs after all other passes over IR.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

void divide_by_estimates(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
