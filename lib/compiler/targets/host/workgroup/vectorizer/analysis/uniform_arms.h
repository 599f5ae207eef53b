// How often the arms of a switch over a value that is the same for all work-items run, such as the ways to blend two pictures that an argument chooses
// from. Only one of them runs in a launch. Used by the estimates, one object for each loop over work-items.
#pragma once

#include "lane_plan.h"
#include "lane_shape.h"

#include <llvm/ADT/DenseMap.h>

namespace polder::compiler::workgroup {

class UniformArms {
public:
    UniformArms(const LanePlan& plan, const LaneShapes& shapes);

    // How often the block runs when the loop's first block runs once, as far as such switches decide it: 1, or less in their arms.
    [[nodiscard]] double part_of(const llvm::BasicBlock& block) const;

private:
    llvm::DenseMap<const llvm::BasicBlock*, double> parts_;  // empty where there is no such switch
};

}  // namespace polder::compiler::workgroup
