// Whether an index of a work-item may be negative: not when it is extended as an unsigned number (lane_shape.h).
#pragma once

namespace llvm {
class Instruction;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Whether `value`, or a number with its step, may be extended as an unsigned number. A remainder, or a bound, is another number: whether
// it is extended does not matter. More than `values_max` values count as yes.
[[nodiscard]] bool is_extended_as_unsigned(const llvm::Instruction& value);

}  // namespace polder::compiler::workgroup
