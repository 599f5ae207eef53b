// The checks before a loop with lanes: that no work-item's index of 32 bits wraps around (LaneShapes::assume_small), and that vectors lie within blocks
// of work-items (LaneShapes::assume_aligned).
//
// Bases that differ by constants have one comparison: the least and the greatest of them, plus an index, must be in range.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_shape.h"

#include <llvm/IR/IRBuilder.h>

namespace polder::compiler::workgroup {

// `count`: the number of work-items, from 1 to 2^31, of 64 bits. A base may be poison where a guard would have excluded it.
[[nodiscard]] llvm::Value* indices_do_not_wrap(llvm::IRBuilder<>& at, llvm::ArrayRef<LaneShapes::SmallBase> bases,
                                               llvm::Value& count);

// Whether each of the bases is a multiple of `lanes` times its stride, and so is the first index, `start`, of the lanes.
[[nodiscard]] llvm::Value* bases_are_multiples(llvm::IRBuilder<>& at, llvm::ArrayRef<LaneShapes::AlignedBase> bases,
                                               llvm::Value& start, unsigned lanes);

}  // namespace polder::compiler::workgroup
