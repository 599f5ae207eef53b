// How long lanes take in each of the two forms that explicit vectors may have (ExplicitVectors): the number of vector instructions of one work-item.
// lane_cost compares lanes with no lanes; this estimate is finer, because the two forms differ in less.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

namespace polder::compiler::workgroup {

struct LaneWork {
    double instructions = 0;
    double masks = 0;  // what would be added if each access of explicit vectors repeated its mask for all elements
};

[[nodiscard]] LaneWork work_of_lanes(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                                     unsigned lanes, const LaneTarget& target);

}  // namespace polder::compiler::workgroup
