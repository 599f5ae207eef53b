// Replaces integer divisions and remainders whose divisor is the same for the whole work-group. The reciprocal is computed once, in the
// prologue, and each work-item multiplies. Lanes gain most, because processors have no division of vectors of integers.
//
// Exact for all operands of 8 to 64 bits, signed and unsigned. A division by zero, whose result OpenCL does not define, does not trap.
//
// Source of the algorithm: T. Granlund and P. Montgomery, "Division by Invariant Integers using Multiplication" (1994), section 4.
#pragma once

#include "uniformity.h"

namespace polder::compiler::workgroup {

// Metadata of the quotients, and of their signs, which are likely to be the same for neighbouring work-items if the dividends are a step apart:
// rows of a picture whose elements ids of one dimension count. The vectorizer would not recognize them.
constexpr const char* neighbours_quotient = "polder.neighbours_quotient";

// Whether a division or remainder in `function` may be replaced: its divisor is no constant.
[[nodiscard]] bool has_variable_divisions(llvm::Function& function);

// Moves uniform values to the end of `prologue`, as hoist_uniform_values does, then replaces the divisions whose divisors are
// there. `uniformity` does not know the values that this makes, so it must not be used afterwards.
void divide_by_reciprocals(llvm::Function& function, llvm::BasicBlock& prologue, const Uniformity& uniformity);

}  // namespace polder::compiler::workgroup
