// A guard such as `if (x >= 1 && x < width - 1)` holds for all work-items between two numbers. With masks, each vector of lanes pays for it: a mask
// is computed, and each store asks whether all lanes are active. So the loop over work-items is divided in three:
//
//     for (i < a) the loop as it was; for (a <= i < b) the body without its guard; for (b <= i < count) the loop as it was
//
// The first and the last part are one loop in the code, which runs twice.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

namespace polder::compiler::workgroup {

// The tag of the loops that were divided.
inline constexpr const char* passing_items_tag = "polder.passing_items";
// The tag of the loop for work-items at the edges, in addition.
inline constexpr const char* clipped_tag = "polder.clipped";
// The tag of the loop without a guard, in addition.
inline constexpr const char* unguarded_tag = "polder.unguarded";

// Changes the code around `plan.loop`, whose parts keep its tags; false when it has no such guard, or when it is long, has inner loops or accesses no
// memory, so that masks cost little. The numbers a and b are multiples of `width`. LoopInfo and dominators are not valid afterwards.
bool separate_passing_items(const LanePlan& plan, const LaneShapes& shapes, unsigned width, Masks masks);

// The same for loops of the kernel whose limits are clipped at the edges (clipped_loops.h, following_loops.h): between them, all work-items have the same
// iterations. Guards that are known are passed there, too. False when there is no such loop.
bool separate_clipped_items(const LanePlan& plan, unsigned width);

// Work-items behind the last one that passes the guards, as in the last group of a row, have nothing to do: `plan.loop` ends with the vector of the last
// one that may pass. Loops with a constant number of work-items stay as they are.
void leave_out_idle_end(LanePlan& plan, const LaneShapes& shapes, unsigned width);
// The same for a loop that has no lanes: it ends with the last work-item that may pass.
void leave_out_idle_end(llvm::Loop& loop);

}  // namespace polder::compiler::workgroup
