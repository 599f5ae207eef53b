// The shapes of a plan's values (LaneShapes), and whether code for increments of 1 pays.
#pragma once

#include "lane_access.h"
#include "lane_plan.h"
#include "lane_shape.h"
#include "lane_target.h"

namespace llvm {
class Loop;
class LoopInfo;
class TargetTransformInfo;
}  // namespace llvm

namespace polder::compiler::workgroup {

LaneShapes shapes_of(const llvm::Loop& loop, const llvm::LoopInfo& loops, const LanePlan& plan,
                     LaneShapes::Certainty certainty, unsigned lanes = 0, Increments increments = Increments::any);

// The vectors of kernels as those of BLAS have increments, which are 1 most often. Code for that is made where code for any increment has no
// lanes: then another one takes no longer than before.
[[nodiscard]] Increments increments_that_pay(llvm::Loop& loop, const llvm::LoopInfo& loops, const LanePlan& plan,
                                             unsigned width, const llvm::TargetTransformInfo& target,
                                             const LaneTarget& prices);

}  // namespace polder::compiler::workgroup
