// Arguments that ids are multiplied by to index buffers, such as the increment of a vector in BLAS: x[id * inc_x + offset].
//
// Where something else than arguments is added to the product, as in `in[id * width + k]` or `in[id * channels + 1]`, the id is that of a row
// or of a structure, and the argument is no increment.
#pragma once

#include <llvm/ADT/ArrayRef.h>

namespace llvm {
class BasicBlock;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Whether the blocks multiply anything by such an argument.
[[nodiscard]] bool have_increments(llvm::ArrayRef<llvm::BasicBlock*> blocks);

}  // namespace polder::compiler::workgroup
