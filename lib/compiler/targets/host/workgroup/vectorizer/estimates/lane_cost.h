// Estimates whether a loop over work-items is faster with lanes. It is not when most accesses of neighbouring lanes are
// not consecutive.
//
// The unit of the estimates is one instruction of one work-item. A gather was measured (decision 13): 11 ns, ten times a load.
#pragma once

#include "apart_costs.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"

namespace polder::compiler::workgroup {

// Whether neighbouring lanes access the same address, consecutive ones, or others.
enum class LanePlaces : uint8_t { same, consecutive, apart };

// The cost of a load or store of all lanes, not under a mask.
[[nodiscard]] double cost_of_access(LanePlaces places, unsigned lanes);

// The cost of one load of all lanes, where each lane loads a structure of `elements` elements at once and the load is one of these elements.
[[nodiscard]] double cost_of_structure_element(const llvm::Type& element, size_t elements, unsigned lanes);

// How often a block inside of `depth` loops is assumed to run.
[[nodiscard]] double weight_of_block(unsigned depth);

// How many loops of the kernel are around a loop over work-items. Code between barriers runs in each iteration of these loops.
[[nodiscard]] unsigned kernel_loops_around(const llvm::Loop& item_loop);

// Whether there is a vector form of `instruction`; other instructions are repeated for each lane.
[[nodiscard]] bool is_vector_instruction(const llvm::Instruction& instruction);

// For one iteration of the vector loop, which runs all work-items of one vector.
struct LaneCosts {
    double lanes = 0;
    double one_by_one = 0;  // of the same work-items, one after the other
    double structures = 0;  // the part of `lanes` that loads structures which are apart, each at once

    [[nodiscard]] double gain() const { return one_by_one - lanes; }
};

[[nodiscard]] LaneCosts costs_of(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, unsigned width,
                                 const LaneTarget& target);

}  // namespace polder::compiler::workgroup
