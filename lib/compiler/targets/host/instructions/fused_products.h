// Computes fma of floats and doubles on x86 processors without an instruction for it.
//
// LLVM calls the C library's function for each lane, with all vector registers saved around the call; without the instruction that function
// takes about a hundred cycles. Here sums and products of the operands' parts give the same result, rounded once, for all lanes together. Doubles that
// are so large or so small that the parts would overflow or lose bits are computed by the C library, which a branch skips.
//
// `afn` on the intrinsic (close_fma of lib/kernel/cl/fma.h) permits an error just above half a unit, and that doubles overflow early: then there is
// no branch, and a sum that is an operand of another one is not rounded to a float between them. `afn arcp` (whole_fma) says, besides, that one factor
// is a whole number below 2^30 and the other a constant, which is added in parts with which the products are exact.
//
// Methods: T. Dekker, A Floating-Point Technique for Extending the Available Precision, 1971 (products in two parts); S. Boldo and
// G. Melquiond, Emulation of FMA and Correctly Rounded Sums: Proved Algorithms Using Rounding to Odd, 2008.
//
// Runs after all other passes over IR that do not expect its branches.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

void compute_fused_products(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
