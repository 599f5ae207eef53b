// Loops in which each lane walks along a row of its own: `for (k < n) sum += a[id * n + k] * x[k]`.
//
// Each load of such a loop is a gather, and each iteration reads one element of every row. The loop is unrolled four times (a second
// loop has the rest), and the loads of four elements get addresses that differ by constants. Then they are adjacent elements, which
// a lane loads at once (BlockAccesses::structure_of). This makes a quarter of the loads. Where the rows' distance is a power of two,
// lines leave the cache between two iterations, and there are a quarter as many iterations.
//
// The same where each lane writes a row of words of its own, and reads private variables: four stores are one (BlockAccesses::number_with).
//
// Other loops that write to memory stay: the loads of an iteration may have to follow the stores of the one before.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

namespace llvm {
class DominatorTree;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Changes the loops inside `plan.loop`. When a loop was changed, `plan`, `shapes` and `accesses` are invalid. Returns the number of
// loops that were changed. A loop is changed only once.
unsigned unroll_row_loops(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                          llvm::DominatorTree& dominators, const llvm::TargetTransformInfo& target);

// What is saved by the loads of such loops for one work-item, in the unit of lane_cost.
[[nodiscard]] double saved_by_row_loops(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                                        llvm::DominatorTree& dominators, const llvm::TargetTransformInfo& target,
                                        unsigned width, Gathers gathers);

}  // namespace polder::compiler::workgroup
