// Branches in masked code whose condition is the same for all lanes, such as the arms of a switch over an argument behind a guard.
//
// All lanes take one side, so the other one need not run, and where the sides meet nothing is chosen by masks. Such a branch stays a branch, when
// its sides are entered only from it and left only for one place. The blocks of the sides that no divergent branch masks are uniform beside each other:
// all have the mask of the block before the branch. Between them are chunks of masked blocks, as in a loop over work-items without a guard.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_shape.h"

#include <map>
#include <optional>

namespace polder::compiler::workgroup {

struct UniformSides {
    llvm::BasicBlock *before = nullptr, *join = nullptr;
    BlockSet blocks;  // all between the two
    llvm::SmallVector<llvm::BasicBlock*> uniform;  // those that are not masked once more, in reverse post-order
    std::map<llvm::BasicBlock*, MaskedChunk> chunks;  // of those that are, by the uniform block that they follow
};

// The sides of the branch of `before`, when they have this form and are long enough. `blocks`: those that are emitted together, of the loop `level`
// or of loops in it.
[[nodiscard]] std::optional<UniformSides> uniform_sides_behind(llvm::BasicBlock& before, const BlockSet& blocks,
                                                               const llvm::Loop* level, const LanePlan& plan,
                                                               const LaneShapes& shapes, unsigned lanes);

}  // namespace polder::compiler::workgroup
