// Code under masks, for the vectorizer: the chunks of blocks between two uniform ones (lane_plan.h).
//
// Masked blocks are emitted one after the other in topological order; each edge between them has a mask, and a block's mask is the or of its edges.
// Phis become selects by these masks. In a masked loop the lanes that have left keep their values. A branch goes around the body of an if whose lanes
// are often all inactive (skipped_code.h). A branch that is the same for all lanes stays one (uniform_sides.h): its sides have the mask of the block
// before it, and where they meet values are real phis.
#pragma once

#include "lane_code.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"
#include "targets/host/workgroup/vectorizer/estimates/skipped_code.h"
#include "targets/host/workgroup/vectorizer/preparation/uniform_sides.h"
#include "whole_iterations.h"

#include <llvm/Analysis/LoopInfo.h>
#include <map>
#include <set>
#include <utility>

namespace polder::compiler::workgroup {

class MaskedCode {
public:
    // All must outlive this object. Code is emitted where the builder of `lanes` is.
    MaskedCode(const LanePlan& plan, const LaneShapes& shapes, LaneCode& lanes, Masks masks)
        : plan_(plan), shapes_(shapes), masks_(masks), function_(*plan.header->getParent()), lanes_(lanes),
          at_(lanes.builder()) {}

    // The instructions of `block` but phis and the branch, for the lanes in `mask`; null: for all lanes.
    void emit_body(llvm::BasicBlock& block, llvm::Value* mask);

    // The chunk behind `leader`, in the loop `level`. `mask`: of the leader.
    void emit_chunk(llvm::BasicBlock& leader, const MaskedChunk& chunk, llvm::Value* mask, const llvm::Loop* level);

    // What arrives from the chunk and its leader at a phi of its join, after the chunk was emitted.
    llvm::Value* arriving_from(llvm::BasicBlock& leader, const MaskedChunk& chunk, llvm::PHINode& phi);

private:
    using Edge = std::pair<llvm::BasicBlock*, llvm::BasicBlock*>;

    llvm::Value* arriving(llvm::Value* value, llvm::BasicBlock* to);
    void set_edges(llvm::BasicBlock& block, llvm::Value* mask);
    llvm::Value* blend(llvm::PHINode& phi, llvm::function_ref<bool(llvm::BasicBlock*)> from,
                       llvm::Value* others = nullptr);
    llvm::Value* mask_of_edges_to(llvm::BasicBlock& block);
    void emit_masked_block(llvm::BasicBlock& block);
    void emit_unless_skipped(llvm::BasicBlock& block, llvm::Value* mask);
    void emit_region_unless_skipped(const SkippedRegion& region, llvm::ArrayRef<llvm::BasicBlock*> units,
                                    const llvm::Loop* level);
    void emit_sides(const UniformSides& sides, const llvm::Loop* level);
    void emit_in_order(const BlockSet& blocks, const llvm::Loop* level, llvm::BasicBlock& before);
    void emit_units(llvm::BasicBlock* before, llvm::ArrayRef<llvm::BasicBlock*> units, const BlockSet& blocks,
                    const llvm::Loop* level, const llvm::BasicBlock* entered = nullptr);
    [[nodiscard]] llvm::BranchInst* common_exit(const llvm::Loop& loop) const;
    llvm::Value* goes_on(const llvm::Loop& loop, const llvm::BranchInst& exit, llvm::Value* any_entering);
    llvm::Value* any_leaving(const llvm::Loop& loop, llvm::ArrayRef<llvm::Loop::Edge> exits);
    void emit_whole_iterations(llvm::BasicBlock& block, const OrderedExit& exit, llvm::Value* entering,
                               llvm::DenseMap<llvm::PHINode*, llvm::Value*>& values);
    void emit_masked_loop(llvm::Loop& loop);

    const LanePlan& plan_;
    const LaneShapes& shapes_;
    const Masks masks_;
    llvm::Function& function_;
    LaneCode& lanes_;
    llvm::IRBuilder<>& at_;

    llvm::DenseMap<const llvm::Value*, llvm::Value*> left_;  // values of lanes when they left masked loops
    std::map<Edge, llvm::Value*> edges_;  // masks
    llvm::DenseMap<const llvm::BasicBlock*, llvm::Value*> block_masks_;  // of emitted blocks; null: all lanes
    // Where uniform sides or the ends of a region have met: the block before the sides, or with which the region begins, by the edges to where they meet, and
    // the values there by this block and the phi.
    std::map<Edge, llvm::BasicBlock*> before_sides_;
    std::map<std::pair<llvm::BasicBlock*, llvm::PHINode*>, llvm::Value*> met_;
    // At the join of the region that is being emitted: what lanes have that are not in it, and the regions in it whose values are among these.
    llvm::DenseMap<llvm::PHINode*, llvm::Value*> others_;
    std::set<std::pair<llvm::BasicBlock*, llvm::PHINode*>> within_others_;
};

}  // namespace polder::compiler::workgroup
