// How long one work-item after the other waits for results of earlier iterations.
//
// A loop such as `x = (f[k] - c[k] * x) / q[k]` takes as long as its chain of operations, however few instructions an iteration has. Lanes go through
// the chain once for all of them. The estimates of lane_cost count instructions, so they do not see it.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

#include <cstdint>

namespace llvm {
class DominatorTree;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Which chains: those of loops of one block, or those of integers within the first block of any inner loop (for sums of floating-point
// numbers, work_of_lanes knows the least time of an iteration).
enum class Chained : uint8_t { in_one_block, of_integers };

// For one work-item, in the unit of lane_cost: the instructions that a processor could execute meanwhile. Only loops that all lanes
// leave together and searches are looked at. `part`: of the instructions of `plan.loop`, those that one work-item executes; below 1 where its explicit
// vectors are kept, and are split in `plan.loop`.
[[nodiscard]] double waited_for_chains(const LanePlan& plan, llvm::DominatorTree& dominators, const LaneTarget& target,
                                       double part = 1, Chained which = Chained::in_one_block);

}  // namespace polder::compiler::workgroup
