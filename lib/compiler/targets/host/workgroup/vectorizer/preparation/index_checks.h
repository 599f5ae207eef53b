// The checks before a loop with lanes: that no work-item's index of 32 bits wraps around (LaneShapes::assume_small), and that vectors lie within blocks
// of work-items (LaneShapes::assume_aligned). And that rows which lanes read and write are not a multiple of 4 KiB apart: then they displace each other from
// the first cache, and loads may wait for stores before them, whose addresses have the same lower 12 bits.
//
// Bases that differ by constants have one comparison: the least and the greatest of them, plus an index, must be in range.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_shape.h"

#include <llvm/IR/IRBuilder.h>

namespace polder::compiler::workgroup {

// `count`: the number of work-items, from 1 to 2^31, of 64 bits. A base may be poison where a guard would have excluded it.
[[nodiscard]] llvm::Value* indices_do_not_wrap(llvm::IRBuilder<>& at, llvm::ArrayRef<LaneShapes::SmallBase> bases,
                                               llvm::Value& count);

// Whether each of the bounds is at most 2^31 - 1.
[[nodiscard]] llvm::Value* bounds_are_small(llvm::IRBuilder<>& at, llvm::ArrayRef<llvm::Value*> bounds);

// Whether each of the bases is a multiple of `lanes` times its stride, and so is the first index, `start`, of the lanes.
[[nodiscard]] llvm::Value* bases_are_multiples(llvm::IRBuilder<>& at, llvm::ArrayRef<LaneShapes::AlignedBase> bases,
                                               llvm::Value& start, unsigned lanes);

// The distance of rows: a number that is known before the loop, times `bytes`.
struct RowDistance {
    llvm::Value* number;
    int64_t bytes;
};
// Of the rows that lanes write in an innermost loop of the kernel in which they also read along rows, and nothing side by side. Empty where distances are
// constants or not known before the loop, and where lanes take less than 0.4 of the time (`part`): waiting in one loop does not matter then.
[[nodiscard]] llvm::SmallVector<RowDistance, 2>
distances_of_written_rows(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, double part);
// Whether none of them is a multiple of 4 KiB.
[[nodiscard]] llvm::Value* rows_are_not_alike(llvm::IRBuilder<>& at, llvm::ArrayRef<RowDistance> rows);

}  // namespace polder::compiler::workgroup
