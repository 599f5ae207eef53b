// Loops that write along a row of each work-item's own: `for (k = begin; k < end; ++k) out[k] = a * x[k] + y[k]`, as programs for processors have, with one
// work-item for each part of the data. As lanes, neighbouring work-items access places that are far apart. LLVM vectorizes such a
// loop along the row where work-items run one after the other.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"

namespace llvm {
class DominatorTree;
class TargetTransformInfo;
}  // namespace llvm

namespace polder::compiler::workgroup {

// What `width` work-items save one after the other by such loops, in the unit of lane_cost: at most `most`.
[[nodiscard]] double saved_by_own_rows(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                                       llvm::DominatorTree& dominators, const llvm::TargetTransformInfo& target,
                                       unsigned width, double most);

}  // namespace polder::compiler::workgroup
