// The order in which the work-groups of a launch run. Drivers count them with x fastest. Where work-items that are neighbours in another
// dimension access neighbouring memory, groups that run one after the other should be neighbours in that dimension, too: a row of memory
// is then read from beginning to end, and a cache line that two groups share is still in the cache for the second.
#pragma once

#include "lowering.h"

namespace polder::compiler::workgroup {

// Changes which group a call of the work-group function runs, so that consecutive calls follow `kernel.order[0]`.
// Each group still runs once. Does nothing when that dimension is x. Must run after restore_prologue.
void follow_lanes_with_groups(LoweredKernel& kernel);

}  // namespace polder::compiler::workgroup
