// What becomes of an index of a work-item (lane_shape.h): it is not negative when it is extended as an unsigned number, and it may wrap around when
// nothing depends on its value in more bits.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

namespace llvm {
class Instruction;
class ZExtInst;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Whether `value`, or a number with its step, may be extended as an unsigned number. A remainder, or a bound, is another number: whether
// it is extended does not matter. More than `values_max` values count as yes.
[[nodiscard]] bool is_extended_as_unsigned(const llvm::Instruction& value);
// The same for extensions of which `matters` is true.
[[nodiscard]] bool is_extended_as_unsigned(const llvm::Instruction& value,
                                           llvm::function_ref<bool(const llvm::ZExtInst&)> matters);

// Whether `value`, a number of 32 bits, or a number with its step may be extended, compared, divided or passed to a function. The seeds of random
// numbers are not: all that is computed from them wraps around. More than `values_max` values count as yes.
[[nodiscard]] bool is_read_as_number(const llvm::Instruction& value);

// Whether `value` is -1 minus its operand, written as an exclusive or with -1.
[[nodiscard]] bool is_complement(const llvm::Instruction& value);

}  // namespace polder::compiler::workgroup
