// How many vectors of work-items run at once where an inner loop waits: for divisions and roots, for gathers, for math functions, for sums under masks.
//
// An iteration with V vectors takes as long as its longest chain, or as the instructions of V vectors where they take longer, and a part of the
// other one, because the two never overlap wholly. The number of vectors is chosen that takes least time for each vector.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

namespace polder::compiler::workgroup {

// 1, 2 or 4. 1 where the kernel has no inner loop, or code for each lane. `lanes`: of one vector.
[[nodiscard]] unsigned vectors_for_waiting_loops(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                                                 const llvm::TargetTransformInfo& target, unsigned lanes,
                                                 const LaneTarget& prices);

}  // namespace polder::compiler::workgroup
