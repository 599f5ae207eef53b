// Which dimension of a work-group becomes lanes.
//
// Neighbours in x most often access neighbouring memory, but not where a program takes get_global_id(0) for a row,
// and x may be narrow. For groups of known size, each dimension's cost is estimated from how the addresses of the
// kernel's accesses change along it; lane_cost has the prices.
#pragma once

#include "targets/host/workgroup/lowering.h"

namespace polder::compiler::workgroup {

// The order of the loops over the dimensions, innermost first. `function`: one work-item's body. `lanes_max`: lanes of
// a vector.
[[nodiscard]] std::array<unsigned, 3> choose_loop_order(llvm::Function& function, const Extent& local_size,
                                                        unsigned lanes_max);

} // namespace polder::compiler::workgroup
