// The branch's immediate post-dominator is where the sides meet. Divergent branches and loops between mask blocks as in the planner (lane_plan.cpp), which has
// done the same for the whole loop over work-items.
#include "uniform_sides.h"

#include "targets/host/workgroup/vectorizer/analysis/masked_order.h"
#include "targets/host/workgroup/vectorizer/estimates/skipped_code.h"

#include <llvm/ADT/SetOperations.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

// Shorter sides are computed both. The branch asks nothing of the lanes, so it is cheaper than one around code for some of them.
constexpr unsigned long_sides = 8;

class SidesFinder {
public:
    SidesFinder(llvm::BasicBlock& before, const llvm::Loop* level, const LanePlan& plan, const LaneShapes& shapes)
        : level_(level), plan_(plan), shapes_(shapes) {
        sides_.before = &before;
        sides_.join = plan.joins.lookup(&before);
    }

    std::optional<UniformSides> run(const BlockSet& among, unsigned lanes) {
        // A loop reads the conditions on which lanes leave it or go on with the next iteration.
        if (!sides_.join || !level_->contains(sides_.join) || sides_.join == level_->getHeader())
            return std::nullopt;
        sides_.blocks = blocks_between(sides_.before->getTerminator(), sides_.join);
        const auto is_entered_elsewhere = [&](const llvm::BasicBlock* block) {
            return llvm::any_of(llvm::predecessors(block), [&](const llvm::BasicBlock* from) {
                return from != sides_.before && !sides_.blocks.contains(from);
            });
        };
        if (sides_.blocks.empty() || !llvm::set_is_subset(sides_.blocks, among) ||
            llvm::any_of(sides_.blocks, is_entered_elsewhere) || length_of(sides_.blocks, shapes_, lanes) < long_sides)
            return std::nullopt;
        for (llvm::BasicBlock* block : plan_.blocks)
            if (sides_.blocks.contains(block))
                order_.push_back(block);
        if (!mask_divergent_blocks() || !find_chunks())
            return std::nullopt;
        return std::move(sides_);
    }

private:
    static BlockSet blocks_between(llvm::Instruction* branch, const llvm::BasicBlock* join) {
        BlockSet found;
        llvm::SmallVector<llvm::BasicBlock*> todo(llvm::successors(branch));
        while (!todo.empty())
            if (llvm::BasicBlock* const block = todo.pop_back_val(); block != join && found.insert(block).second)
                todo.append(llvm::succ_begin(block), llvm::succ_end(block));
        return found;
    }

    // Lanes pass the code between the end of `block` and `join` under masks of their own.
    void mask_behind(llvm::BasicBlock& block, const llvm::BasicBlock* join) {
        leaders_.insert(&block);
        const BlockSet masked = blocks_between(block.getTerminator(), join);
        masked_.insert(masked.begin(), masked.end());
    }

    [[nodiscard]] bool leads_into_masked_code(const llvm::BasicBlock& block) const {
        return !masked_.contains(&block) && !leaders_.contains(&block) &&
               llvm::any_of(llvm::successors(&block),
                            [&](const llvm::BasicBlock* next) { return masked_.contains(next); });
    }

    bool mask_divergent_blocks() {
        for (llvm::BasicBlock* block : order_) {
            const llvm::Loop* const inner = child_loop(*plan_.loops, level_, *block);
            const auto* const branch = llvm::cast<llvm::BranchInst>(block->getTerminator());
            if (inner && inner->getHeader() == block) {
                llvm::BasicBlock* const preheader = inner->getLoopPreheader();
                const llvm::BasicBlock* join = preheader;
                while (join && (join == preheader || inner->contains(join)))
                    join = plan_.joins.lookup(join);
                if (!join)
                    return false;
                mask_behind(*preheader, join);
            } else if (!inner && branch->isConditional() && !shapes_.of(branch->getCondition()).is_uniform()) {
                if (!plan_.joins.lookup(block))
                    return false;
                mask_behind(*block, plan_.joins.lookup(block));
            }
        }
        // Code that is masked behind one side of a uniform branch and entered from the other one begins with this branch.
        const auto entry = [&] {
            return llvm::find_if(order_, [&](llvm::BasicBlock* block) { return leads_into_masked_code(*block); });
        };
        for (auto found = entry(); found != order_.end(); found = entry()) {
            if (!plan_.joins.lookup(*found))
                return false;
            mask_behind(**found, plan_.joins.lookup(*found));
        }
        return llvm::none_of(llvm::successors(sides_.before),
                             [&](llvm::BasicBlock* side) { return masked_.contains(side); });
    }

    bool find_chunks() {
        auto chunks = chunks_of(order_, masked_, leaders_);
        if (!chunks)
            return false;
        sides_.chunks = std::move(*chunks);
        llvm::copy_if(order_, std::back_inserter(sides_.uniform),
                      [&](llvm::BasicBlock* block) { return !masked_.contains(block); });
        return true;
    }

    const llvm::Loop* const level_;
    const LanePlan& plan_;
    const LaneShapes& shapes_;
    UniformSides sides_;
    llvm::SmallVector<llvm::BasicBlock*> order_;
    BlockSet masked_;
    llvm::SmallPtrSet<const llvm::BasicBlock*, 16> leaders_;
};

}  // namespace

std::optional<UniformSides> uniform_sides_behind(llvm::BasicBlock& before, const BlockSet& blocks,
                                                 const llvm::Loop* level, const LanePlan& plan,
                                                 const LaneShapes& shapes, unsigned lanes) {
    const auto* const branch = llvm::cast<llvm::BranchInst>(before.getTerminator());
    if (plan.kind == LoopKind::sub_group || !branch->isConditional() ||
        branch->getSuccessor(0) == branch->getSuccessor(1) || !shapes.of(branch->getCondition()).is_uniform())
        return std::nullopt;
    return SidesFinder(before, level, plan, shapes).run(blocks, lanes);
}

}  // namespace polder::compiler::workgroup
