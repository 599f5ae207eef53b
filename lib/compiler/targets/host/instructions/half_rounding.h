// Works around a defect of LLVM 22 on processors with AVX512-FP16: the conversion of a half to int that follows llvm.rint becomes a truncation of
// the argument itself (vcvttsh2si), so that rint(0.501h) is 0 as an int. llvm.roundeven, which gives the same result in the
// rounding mode of kernels, is compiled correctly. LLVM makes such pairs of rint and conversion from float values that were halves.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/Target/TargetMachine.h>

namespace polder::compiler {

// Rounds halves to whole numbers, and converts them to integers, as floats, for processors without arithmetic of halves: LLVM shortens a conversion, a rounding of the float and a
// conversion back to a rounding of the half, which its code generation then makes for one element after the other.
void round_halves_as_floats(llvm::Function& function, const llvm::TargetMachine& machine);

// Replaces llvm.rint of halves and vectors of halves. Runs after all other passes over IR.
void round_halves_to_even(llvm::Function& function);

}  // namespace polder::compiler
