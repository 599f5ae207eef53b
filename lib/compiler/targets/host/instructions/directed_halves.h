// Halves that are rounded up, down or towards zero, for processors with AVX-512: one instruction for each conversion (vcvtpd2ps, vcvtps2ph).
//
// The library rounds to a half next to the number, compares the two, and takes a step (lib/kernel/cl/half_bits.inc).
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// Runs after all other passes over IR that know conversions.
void convert_to_directed_halves(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
