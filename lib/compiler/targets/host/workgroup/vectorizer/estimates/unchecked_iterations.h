// Loops whose checks at the edges mostly succeed run without them where work-items run one after the other (passed_checks.h). In lanes the checks stay.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_shape.h"

namespace llvm {
class DominatorTree;
}  // namespace llvm

namespace polder::compiler::workgroup {

// What `width` work-items save one after the other by such loops, in the unit of lane_cost: at most `most`.
[[nodiscard]] double saved_by_passed_checks(const LanePlan& plan, const LaneShapes& shapes,
                                            llvm::DominatorTree& dominators, unsigned width, double most);

}  // namespace polder::compiler::workgroup
