// Products with powers of two whose exponent is a number with a fraction, for processors with AVX-512: one instruction (vscalef), which rounds the exponent down
// itself.
//
// The library's exponentials end with polder_scale(x, e) = x 2^floor(e), which is LLVM's ldexp of a whole number made of e. Code generation has only the
// same instruction for it, and changes the exponent to an integer and back before: three more.
//
// Processors other than AMD's take about 150 cycles where a result is zero. There lanes with such results are masked; x is positive and below 2.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// Runs after all other passes over IR that know ldexp.
void scale_by_instructions(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
