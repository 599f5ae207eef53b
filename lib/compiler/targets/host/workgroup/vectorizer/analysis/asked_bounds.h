// Numbers of 32 bits, extended as unsigned ones, that are used only where they are below a bound: `x - 1` of type uint as an index behind
// `if (x - 1 < width)`. At the left edge the number has wrapped around, and no work-item uses it. As long as the bound is at most 2^31 - 1, an extension with the
// sign is as good: what is negative is not below the bound as an unsigned number either.
#pragma once

#include <llvm/ADT/SmallVector.h>

namespace llvm {
class Instruction;
class Loop;
class Value;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Appends the bounds, which do not change in `loop`, that `extension` is compared with: a zero extension from 32 bits to 64, or the lower 32 bits of a number of
// 64 bits. False where it, or a number that is computed from it, may be used by work-items for which it is not below one of them.
[[nodiscard]] bool find_asked_bounds(const llvm::Instruction& extension, const llvm::Loop& loop,
                                     llvm::SmallVectorImpl<llvm::Value*>& bounds);

}  // namespace polder::compiler::workgroup
