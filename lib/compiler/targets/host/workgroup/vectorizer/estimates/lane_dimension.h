// Which dimension of a work-group becomes lanes.
//
// Neighbours in x most often access neighbouring memory. This is different when a program uses get_global_id(0) as the number of a
// row, or when the work-group is narrow in x. The cost of each dimension is estimated from how the addresses of the kernel's accesses
// change along it; lane_cost.h has the costs. A dimension of unknown size is assumed to be as long as a vector if the kernel uses its
// id, and 1 otherwise.
#pragma once

#include "targets/host/workgroup/frame/lowering.h"

namespace polder::compiler::workgroup {

struct LoopOrder {
    std::array<unsigned, 3> dimensions{0, 1, 2};  // innermost first
    // Where dimension 0 is innermost because the size of work-groups is unknown: the dimension that would be, if work-groups are known to have
    // rows_for_lanes work-items in it or more. 0: none.
    unsigned with_known_size = 0;
};

// The order of the loops over the dimensions. `function`: one work-item's body. `lanes_max`: lanes of a vector.
[[nodiscard]] LoopOrder choose_loop_order(llvm::Function& function, const Extent& local_size, unsigned lanes_max);

}  // namespace polder::compiler::workgroup
