// For loops over work-items that have no lanes, but in which a loaded value decides whether a work-item does anything: `if (mask[id]) …`, as
// in a breadth-first search. A loop with lanes evaluates the guards of `items_at_once` neighbours. One work-item after the other runs then, but only
// those whose guard is true:
//
//     for (b = 0; b < count; b += items_at_once)
//         for (i < items_at_once) busy[i] = guard(b + i);   (lanes)
//         for (bits = busy != 0 as a number; bits != 0; bits &= bits - 1) the body of the loop as it was, for work-item b + cttz(bits)
//
// The result of the first loop only decides about skipping: each work-item that is not skipped evaluates its guard again. Fewer than `items_at_once`
// work-items at the end all run.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"

namespace polder::compiler::workgroup {

// The tag of the loops that evaluate guards.
inline constexpr const char* idle_items_tag = "polder.idle_items";

// Changes the code around `plan.loop`, which becomes the inner loop; false when it has no guard that lanes can evaluate. `items_at_once`: at most 64.
// The loop that
// evaluates guards has the tags of `plan.loop` and `idle_items_tag`. LoopInfo and dominators are not valid afterwards.
bool skip_idle_items(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, unsigned items_at_once);

}  // namespace polder::compiler::workgroup
