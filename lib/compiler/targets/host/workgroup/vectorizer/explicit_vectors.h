// Explicit vectors: vector types in the kernel's source, such as float4. When work-items become lanes, such a vector is
// split into its elements. These functions estimate when it is better to keep the vectors and have no lanes.
#pragma once

#include <llvm/ADT/ArrayRef.h>

namespace llvm {
class Loop;
class LoopInfo;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Whether most accesses in the loops are of explicit vectors with eight or more elements.
[[nodiscard]] bool use_wide_vectors(llvm::ArrayRef<llvm::Loop*> work_item_loops, const llvm::LoopInfo& loops);

// How many instructions one work-item saves when its vectors are kept. Blocks are weighted as in lane_cost.
// `register_elements`: 32-bit elements of a vector register.
[[nodiscard]] double saved_by_vectors(llvm::ArrayRef<llvm::Loop*> work_item_loops, const llvm::LoopInfo& loops,
                                      unsigned register_elements);

}  // namespace polder::compiler::workgroup
