// Where code for some lanes has a branch around it, for vectors in which no lane is active.
#pragma once

#include "lane_plan.h"
#include "lane_shape.h"

namespace polder::compiler::workgroup {

// Whether all lanes are often outside of `block`, the body of an if, so that a branch around it pays. Where the condition compares an id
// with a bound of the launch, only the last lanes are outside, so the body must be long.
[[nodiscard]] bool is_worth_skipping(const llvm::BasicBlock& block, const LanePlan& plan, const LaneShapes& shapes,
                                     unsigned lanes);

// Whether a branch around an inner loop pays when no lane is in the mask `entering`. Without it, the loop's first iteration runs for no lane, and
// gathers and scatters take as long as for some.
[[nodiscard]] bool is_worth_skipping(const llvm::Loop& loop, const llvm::Value& entering, const LanePlan& plan,
                                     const LaneShapes& shapes, unsigned lanes);

}  // namespace polder::compiler::workgroup
