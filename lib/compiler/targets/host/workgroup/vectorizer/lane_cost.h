// Whether lanes pay: a loop over work-items whose lanes mostly access memory at places apart from each other is
// faster one work-item at a time.
//
// Estimates in instructions of one work-item. What a gather costs is measured (decision 13): 11 ns, ten times a load.
#pragma once

#include "lane_access.h"
#include "lane_plan.h"

namespace polder::compiler::workgroup {

// How the places that neighbouring lanes access lie.
enum class LanePlaces : uint8_t { same, consecutive, apart };

// A load or store of all lanes. A masked one cannot be taken apart into one for each lane.
[[nodiscard]] double cost_of_access(LanePlaces places, unsigned lanes, bool is_masked);

// How much a block counts that is `depth` loops deep.
[[nodiscard]] double weight_of_block(unsigned depth);

// What has a form for vectors; other calls are made lane by lane.
[[nodiscard]] bool is_vector_instruction(const llvm::Instruction& instruction);

// Of all work-items of one vector, in one passage.
struct LaneCosts {
    double lanes = 0;
    double one_by_one = 0;  // vectors taken apart

    [[nodiscard]] double gain() const { return one_by_one - lanes; }
};

[[nodiscard]] LaneCosts costs_of(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                                 unsigned width);

} // namespace polder::compiler::workgroup
