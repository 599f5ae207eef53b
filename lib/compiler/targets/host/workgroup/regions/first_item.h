// Regions in which only the group's first work-item does anything.
//
// Between two barriers a kernel often lets one work-item work: an asynchronous copy, or `if (get_local_id(0) == 0) sum = 0;` in a group with one
// dimension. Loops over the other work-items would have no effect, but LLVM's passes would have to find that out. So such a region is run
// once, for the first work-item.
#pragma once

#include "carried_values.h"
#include "region.h"
#include "targets/host/workgroup/frame/lowering.h"
#include "targets/host/workgroup/work_items/uniformity.h"

#include <bitset>
#include <llvm/IR/Dominators.h>
#include <vector>

namespace polder::compiler::workgroup {

class FirstItem {
public:
    // `kernel`: with the blocks of one work-item, after `place_cuts`. Later, blocks may be added, but these may not be changed.
    explicit FirstItem(const LoweredKernel& kernel);

    // Whether no other work-item has a side effect in `region` or leaves a value for a later one.
    [[nodiscard]] bool is_alone(const Region& region, const Uniformity& uniformity, CarriedValues& carried) const;

private:
    // An edge that only the first work-items of some dimensions take.
    struct Guard {
        llvm::BasicBlockEdge edge;
        std::bitset<3> dimensions;
    };
    [[nodiscard]] bool is_alone_in(const llvm::BasicBlock& block) const;

    std::bitset<3> single_;  // dimensions with one work-item
    llvm::DominatorTree dominators_;
    std::vector<Guard> guards_;
};

}  // namespace polder::compiler::workgroup
