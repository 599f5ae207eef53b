// For loops over work-items that have no lanes, but in which a loaded value decides whether a work-item does anything: `if (mask[id]) …`, as
// in a breadth-first search. A loop with lanes evaluates the guards of `items_at_once` neighbours. When all of them are false, these
// work-items are skipped:
//
//     for (b = 0; b < count; b += items_at_once)
//         any = false; for (i < items_at_once) if (guard(b + i)) any = true;   (lanes)
//         if (any) for (i = b; i < min(b + items_at_once, count); ++i) the loop as it was
//
// The result of the first loop only decides about skipping: each work-item that is not skipped evaluates its guard again.
#pragma once

#include "lane_access.h"
#include "lane_plan.h"

namespace polder::compiler::workgroup {

// The tag of the loops that evaluate guards.
inline constexpr const char* idle_items_tag = "polder.idle_items";

// Changes the code around `plan.loop`, which becomes the inner loop; false when it has no guard that lanes can evaluate. The loop that
// evaluates guards has the tags of `plan.loop` and `idle_items_tag`. LoopInfo and dominators are not valid afterwards.
bool skip_idle_items(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, unsigned items_at_once);

}  // namespace polder::compiler::workgroup
