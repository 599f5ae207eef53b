// Divisions by 0 and by infinity in code whose divisions may be approximate (-cl-fast-relaxed-math).
//
// LLVM computes such a division of a vector of floats on x86 from the processor's estimate of the reciprocal and one step of Newton's
// method, whose error term 1 - divisor * estimate is NaN for 0 and infinity, where the estimate itself is right. So
// 1 / (1 + exp(-x)) is NaN below -88. The option permits it, but programs made for GPUs expect 0 there. Here the error term is
// limited by the minimum instruction of x86, which returns its second operand, the limit, if the first is NaN.
//
// A quotient is within 2.5 ULP for divisors from 2^-126 to 2^126, as the specification wants. Where the reciprocal of a divisor that is not 0
// is infinite, the quotient still may be NaN.
//
// Runs after all other passes over IR. Divisions by square roots remain: LLVM has an estimate of the reciprocal root for them.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

void divide_by_estimates(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
