// Vectorizes loops over work-items: several work-items run at once, as the lanes of vectors. (LLVM's loop vectorizer does not handle
// loops whose body contains loops, and was slower on the others.)
//
// Whole-function vectorization after Karrenberg and Hack, restricted to one loop over work-items: branches that are
// uniform over neighbouring work-items stay branches; divergent code is linearised under masks, and its
// loops run until no lane is active. A value is uniform (one scalar), strided (the first lane's scalar and a
// constant step) or varying (a vector). A loop with code that cannot be vectorized is not changed.
#pragma once

#include "targets/host/workgroup/frame/options.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

#include <llvm/IR/PassManager.h>

namespace polder::compiler::workgroup {

// Longer loops have no lanes, however much these would gain.
inline constexpr size_t lane_instructions_of_winners_max = 18000;

struct SubGroupReport {
    unsigned loops = 0;
    std::string obstacle;  // why a loop could not be vectorized, so that the function cannot be used; else empty
};
// Makes the work-items of each sub-group the lanes of one vector. Any control flow is possible.
[[nodiscard]] SubGroupReport vectorize_sub_group_loops(llvm::Function& function, const SubGroupLanes& lanes,
                                                       llvm::FunctionAnalysisManager& analyses);

// The same for the one loop of `function` with the tag of sub-groups. `prices`: not null where it should remain a loop when lanes would be slower.
// Returns the obstacle, or an empty text.
[[nodiscard]] std::string vectorize_one_vector(llvm::Function& function, const SubGroupLanes& lanes,
                                               llvm::FunctionAnalysisManager& analyses,
                                               const LaneTarget* prices = nullptr);

// `width`: lanes; a power of two. Where sub-groups have become lanes, the kernel's own vectors are split already, and all others are kept.
LaneReport vectorize_work_item_loops(llvm::Function& function, unsigned width, const WorkGroupOptions& options,
                                     const LaneTarget& target, const SubGroupReport& sub_groups,
                                     llvm::FunctionAnalysisManager& analyses);

}  // namespace polder::compiler::workgroup
