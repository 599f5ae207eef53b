// The order in which the work-groups of a launch run. Drivers count them with x fastest. Where neighbours in another dimension are
// neighbours in memory, groups that follow each other should be neighbours in that dimension, too: a row of memory is then
// read from its beginning to its end, and the parts of a cache line that two groups share are still in the cache.
#pragma once

#include "lowering.h"

namespace polder::compiler::workgroup {

// Makes the work-group function run another group than it is called for, so that the groups follow each other along
// `kernel.order[0]`. Each group still runs once. Does nothing when that is x. After restore_prologue.
void follow_lanes_with_groups(LoweredKernel& kernel);

}  // namespace polder::compiler::workgroup
