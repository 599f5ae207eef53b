// Writes the vector form of a loop over work-items in front of that loop, which then runs only the work-items that do not fill a
// vector. This is the second half of the vectorizer. Masked blocks follow each other without branches; a masked loop runs until no
// lane is active.
#pragma once

#include "lane_code.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"
#include "targets/host/workgroup/vectorizer/preparation/index_checks.h"

#include <set>
#include <string>

namespace polder::compiler::workgroup {

// `rows`: where one of these distances is that of whole pages, the work-items run one after the other. `width`: lanes; a power of two. `plan`, `shapes` and `accesses` belong to this loop; they are invalid afterwards. Returns the names
// of the functions that are called for each lane in turn (LaneCode::serial_calls).
std::set<std::string> emit_vector_loop(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                                       unsigned width, Masks masks, llvm::ArrayRef<RowDistance> rows);

// The same for a loop over the work-items of one sub-group. Code without a loop replaces it, because one vector has all work-items.
// `otherwise`: where control goes when what `shapes` assumes does not hold; may be null when it assumes nothing.
void emit_sub_group(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                    const SubGroupLanes& sub_group, llvm::BasicBlock* otherwise);

}  // namespace polder::compiler::workgroup
