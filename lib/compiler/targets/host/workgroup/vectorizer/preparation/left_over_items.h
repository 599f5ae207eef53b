// Work-items that whole vectors leave over, as the last two of rows of 50, are one masked vector instead of one work-item after the other. The loop behind
// the vectors becomes
//
//     for (i = start; i < count rounded up to whole vectors; ++i) if (i < count) the body
//
// which has lanes like any other loop with a guard.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"

namespace polder::compiler::workgroup {

// The tag of such loops, in addition.
inline constexpr const char* left_over_tag = "polder.left_over";

// The part of the work-items that is left over by vectors of this width, and runs one by one; 0 where it is not known.
[[nodiscard]] double part_left_over(const LanePlan& plan, unsigned width);

// Changes `plan.loop`, in front of which its vector form was emitted, and which starts at a multiple of `width`; false where its counter has other uses than to count.
// LoopInfo and dominators are not valid afterwards.
bool mask_left_over_items(const LanePlan& plan, unsigned width);

}  // namespace polder::compiler::workgroup
