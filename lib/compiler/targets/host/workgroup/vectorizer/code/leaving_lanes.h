// Iterations of a masked loop in which no lane leaves.
//
// A loop with several exits, such as a search that ends with a match or after the last element, needs a mask for each exit and the values that
// each lane had when it left. These take more instructions than the search, most of all without mask registers. They change only when a lane leaves:
//
//     body:     the iteration;  branch to `leaving` if any lane leaves, else to `next`
//     leaving:  masks and values of the lanes that leave;  branch to `next` if any lane stays, else to `after`
//     next:     branch to body
//
// Where all lanes have one condition for an exit, the branch needs no mask of it.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_shape.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IRBuilder.h>

namespace polder::compiler::workgroup {

class LeavingLanes {
public:
    // Ends the iteration. Code is then emitted where lanes leave.
    LeavingLanes(llvm::IRBuilder<>& at, llvm::Value* any_leaving);

    // The end of both kinds of iterations. It has no terminator yet.
    [[nodiscard]] llvm::BasicBlock* next() const { return next_; }

    // The value in the next iteration: `left` where lanes left, else `same`.
    llvm::Value* merged(llvm::Value* same, llvm::Value* left);

private:
    llvm::IRBuilder<>& at_;
    llvm::BasicBlock* const iteration_;
    llvm::BasicBlock *leaving_ = nullptr, *next_ = nullptr;
};

// The exit's branch, when it is evaluated in each iteration, for all lanes in the loop, and its condition is the same for them; else null.
[[nodiscard]] const llvm::BranchInst* exit_of_all_lanes(const llvm::Loop& loop, const llvm::Loop::Edge& exit,
                                                        const llvm::LoopInfo& loops, const LaneShapes& shapes);

// Whether lanes probably leave the loop in few of its iterations: all of them at its end, unless they leave before it. Where each lane has a
// number of iterations of its own, and no such end, some lane leaves in many of them, and so it does in short loops. Where masks are cheap, false
// also when lanes carry values from one iteration to the next: masks are computed while lanes wait for these.
[[nodiscard]] bool is_left_rarely(const llvm::Loop& loop, llvm::ArrayRef<llvm::Loop::Edge> exits, const LanePlan& plan,
                                  const LaneShapes& shapes, Masks masks);

// Whether the mask is the constant that has all lanes.
[[nodiscard]] bool is_of_all_lanes(const llvm::Value& mask);

// Replaces questions whether `mask` has any lane, where it is known that it has.
void answer_questions(llvm::Value& mask);

}  // namespace polder::compiler::workgroup
