// Divisions of numbers into blocks by powers of two, such as `id / 32` and `id % 32` (LaneShapes::in_block).
#pragma once

#include <llvm/ADT/ArrayRef.h>

namespace llvm {
class BasicBlock;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Whether the code has any. Without them, shapes do not depend on the lanes of a vector.
[[nodiscard]] bool have_divisions_into_blocks(llvm::ArrayRef<llvm::BasicBlock*> code);

}  // namespace polder::compiler::workgroup
