// Loops in which each lane walks along a row of its own: `for (k < n) sum += a[id * n + k] * x[k]`.
//
// Each load of such a loop is a gather, and each of its iterations reads one element of every row. Four iterations are made one
// (unrolled, the rest in a second loop), and the loads of four elements get addresses that differ by constants. Then they are
// elements side by side, which a lane loads at once (BlockAccesses::structure_of): a quarter of the loads, and of the lines that
// leave the cache between two iterations where the rows' distance is a power of two.
//
// Loops that write to memory stay: the loads of an iteration may have to follow the stores of the one before.
#pragma once

#include "lane_access.h"
#include "lane_plan.h"

namespace llvm {
class DominatorTree;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Changes the loops inside `plan.loop`; `plan`, `shapes` and `accesses` do not fit any more where one was changed. Returns the number of
// loops that were changed: 0 for those that were changed before.
unsigned unroll_row_loops(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                          llvm::DominatorTree& dominators, const llvm::TargetTransformInfo& target);

}  // namespace polder::compiler::workgroup
