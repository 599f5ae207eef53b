// Where code for some lanes has a branch around it, for vectors in which no lane is active.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_shape.h"

#include <llvm/IR/IRBuilder.h>
#include <optional>

namespace polder::compiler::workgroup {

// Whether all lanes are often outside of `block`, the body of an if, so that a branch around it pays. Where the condition compares an id
// with a bound of the launch, only the last lanes are outside, so the body must be long.
[[nodiscard]] bool is_worth_skipping(const llvm::BasicBlock& block, const LanePlan& plan, const LaneShapes& shapes,
                                     unsigned lanes);

// Whether a branch around an inner loop pays when no lane is in the mask `entering`. Without it, the loop's first iteration runs for no lane, and
// gathers and scatters take as long as for some.
[[nodiscard]] bool is_worth_skipping(const llvm::Loop& loop, const llvm::Value& entering, const LanePlan& plan,
                                     const LaneShapes& shapes, unsigned lanes);

// How many simple instructions take as long as the blocks.
[[nodiscard]] unsigned length_of(const BlockSet& blocks, const LaneShapes& shapes, unsigned lanes);

// The body of an if that has several blocks, or a side of an if: entered only by the edge from `before` to `begin`, and left only for `join`, where
// others arrive that have not entered it.
struct SkippedRegion {
    llvm::BasicBlock *before = nullptr, *begin = nullptr, *join = nullptr;
    BlockSet blocks;
};

// The region behind the branch of `before`, in `blocks`, when a branch around all of it pays; nothing when there is none.
[[nodiscard]] std::optional<SkippedRegion> region_worth_skipping(llvm::BasicBlock& before, const BlockSet& blocks,
                                                                 const LanePlan& plan, const LaneShapes& shapes,
                                                                 unsigned lanes);

// The side of a branch in masked code when a branch around it pays: an arm of a switch over an argument, or one that ends with `return`, so that it does not
// lead to the other side. It begins with the first of `units`, the blocks at `level` that are still to be emitted, and is a part of them at their
// beginning. `blocks` are all blocks that are emitted at this level.
[[nodiscard]] std::optional<SkippedRegion> side_worth_skipping(llvm::ArrayRef<llvm::BasicBlock*> units,
                                                               const BlockSet& blocks, const llvm::Loop* level,
                                                               const LanePlan& plan, const LaneShapes& shapes,
                                                               unsigned lanes);

// A branch around the code that is emitted until `end`.
class SkippingBranch {
public:
    SkippingBranch(llvm::IRBuilder<>& at, llvm::Value* any);

    void end();

    // What the code made, or `otherwise` where it was skipped.
    llvm::Value* merged(llvm::Value* made, llvm::Value* otherwise);
    // The same for a value that no lane reads where the code was skipped. A scalar may decide a branch, so it is some number.
    llvm::Value* merged(llvm::Value* made);

private:
    llvm::IRBuilder<>& at_;
    llvm::BasicBlock *const before_, *const behind_;
    llvm::BasicBlock* last_ = nullptr;
};

// Whether `block` runs under a mask that rarely has all lanes: a condition around it is that two numbers are equal.
[[nodiscard]] bool has_partial_mask(const llvm::BasicBlock& block, const LanePlan& plan, const LaneShapes& shapes);

}  // namespace polder::compiler::workgroup
