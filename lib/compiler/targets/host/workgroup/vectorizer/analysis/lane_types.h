// How the values of all lanes lie in one vector. Numbers: one element for each lane. Explicit vectors (float4 in the kernel's source): the elements of
// one lane side by side, those of lane 0 first, as neighbouring work-items have them in memory. Three elements take the place of four, as in
// OpenCL's memory; the fourth is never read.
#pragma once

#include <llvm/IR/DerivedTypes.h>

namespace llvm {
class CastInst;
class Instruction;
class Loop;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Whether `type` can be the element type of a vector.
[[nodiscard]] bool is_scalar(const llvm::Type& type);

// Whether a value of `type` has a form for lanes: a number, a pointer, or an explicit vector of 2, 3, 4, 8 or 16 numbers.
[[nodiscard]] bool has_lane_form(const llvm::Type& type);

// How many elements of a vector over all lanes one lane's value takes: 1 for a number.
[[nodiscard]] unsigned elements_of_lane(const llvm::Type& type);

// Whether the instruction only moves elements of explicit vectors.
[[nodiscard]] bool moves_elements(const llvm::Instruction& instruction);

// Whether bits stay in their lane where the values of all lanes are cast at once.
[[nodiscard]] bool is_cast_lane_by_lane(const llvm::CastInst& cast);

// The vector of the values of `lanes` lanes.
[[nodiscard]] llvm::FixedVectorType* of_lanes(llvm::Type& type, unsigned lanes);

// Whether integers of `type` are divided in lanes, by quotients of floating-point numbers (lane_division.h): up to 32 bits.
[[nodiscard]] bool is_divided_in_lanes(const llvm::Type& type);

// Whether doubles are so many that lanes should fill a register with them. A few, such as products with a constant without an f, take two registers.
[[nodiscard]] bool is_mostly_double(const llvm::Loop& loop);

}  // namespace polder::compiler::workgroup
