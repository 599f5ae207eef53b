// Products with 64 bits of 32-bit numbers in lanes, such as the fixed-point product `(int)((long)a * b >> 16)`: the elements at even and at odd places are
// computed apart.
//
// Sixteen numbers extended to 64 bits are two registers, and each extension moves numbers across the whole register, as does making them narrow
// again: four cycles each time. A number at an even place is already the lower half of 64 bits, one at an odd place the upper half. So a shift extends
// it, and one instruction puts both results together.
//
// For vectors whose extended form fills more than one register. Runs after all other passes over IR that know products and divisions.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
class TargetTransformInfo;
}  // namespace llvm

namespace polder::compiler {

// `shifts_signed`: whether the processor shifts vectors of signed 64-bit numbers; where not, only products extend signed numbers at no cost.
struct EvenAndOddTarget {
    unsigned register_bits = 128;
    bool shifts_signed = false;
};
EvenAndOddTarget even_and_odd_target(const llvm::Function& function, const llvm::TargetMachine& machine);

void separate_even_and_odd(llvm::Function& function, const EvenAndOddTarget& target);

}  // namespace polder::compiler
