// Writes the vector form of a work-item loop in front of the loop, which stays for the rest of a row: the second half of
// the vectorizer. Masked blocks are laid out one after the other, masked loops run until no lane is left.
#pragma once

#include "lane_access.h"
#include "lane_code.h"
#include "lane_plan.h"

#include <set>
#include <string>

namespace polder::compiler::workgroup {

// `width`: lanes; a power of two. `plan`, `shapes` and `accesses` are of the same loop and useless afterwards. Returns the names
// of the functions that are called for each lane in turn (LaneCode::serial_calls).
std::set<std::string> emit_vector_loop(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                                       unsigned width);

// The same for a loop over the work-items of one sub-group, which is replaced: one passage, and no loop. `otherwise`: where
// control goes when what `shapes` assumes does not hold; may be null when it assumes nothing.
void emit_sub_group(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                    const SubGroupLanes& sub_group, llvm::BasicBlock* otherwise);

}  // namespace polder::compiler::workgroup
