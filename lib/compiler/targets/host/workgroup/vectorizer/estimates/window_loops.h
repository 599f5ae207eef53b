// How often loops over windows run: from and to numbers that follow from the work-item's place and that minima and maxima keep inside of something, as the
// pixels around one that a picture has. Such windows are short, while other loops of unknown length may be long. Used by the estimates.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_shape.h"

#include <llvm/ADT/STLFunctionalExtras.h>

namespace polder::compiler::workgroup {

// How often the block runs by how often it would if the loops of the kernel over windows around it were any loops: 1, or less.
double part_of_windows(const llvm::BasicBlock& block, const LanePlan& plan, const LaneShapes& shapes);

// The same before there is a plan. `item_loop` is the loop over work-items. `is_uniform`: whether the value, which the loop computes, is the same for all.
double part_of_windows(const llvm::BasicBlock& block, const llvm::LoopInfo& loops, const llvm::Loop& item_loop,
                       llvm::function_ref<bool(const llvm::Instruction&)> is_uniform);

}  // namespace polder::compiler::workgroup
