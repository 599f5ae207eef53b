// The shapes of a plan's values (LaneShapes), and which assumptions about them pay: increments of 1, vectors of lanes within blocks (item_blocks.cpp).
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_shape.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

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

// `width` where shapes for vectors within blocks of work-items make the lanes cheaper, and 0 for shapes without them. Quotients are the same for a vector then,
// but change from vector to vector, so that a sum of 32 bits with one is not known to stay within them.
[[nodiscard]] unsigned lanes_of_blocks_that_pay(llvm::Loop& loop, const llvm::LoopInfo& loops, const LanePlan& plan,
                                                unsigned width, Increments increments,
                                                const llvm::TargetTransformInfo& target, const LaneTarget& prices);

}  // namespace polder::compiler::workgroup
