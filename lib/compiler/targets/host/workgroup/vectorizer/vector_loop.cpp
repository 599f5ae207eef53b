// Uniform blocks are emitted as they are, with vector instructions. Masked blocks of a chunk are emitted one after the other in
// topological order; each edge between them has a mask (edges_), and a block's mask is the or of its edges. Phis become
// selects by these masks. In a masked loop the lanes that have left keep their values (left_). A branch goes around the body of an if
// whose lanes are often all inactive (skipped_code.h).
#include "vector_loop.h"

#include "hoisted_loads.h"
#include "index_checks.h"
#include "leaving_lanes.h"
#include "masked_order.h"
#include "needed_behind.h"
#include "skipped_code.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>

namespace polder::compiler::workgroup {

namespace {

using Edge = std::pair<llvm::BasicBlock*, llvm::BasicBlock*>;

class VectorLoop {
public:
    VectorLoop(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, unsigned width, Masks masks,
               const SubGroupLanes* sub_group)
        : plan_(plan), shapes_(shapes), masks_(masks), function_(*plan.header->getParent()),
          lanes_(plan, shapes, accesses, width, sub_group), at_(lanes_.builder()) {}

    void emit() {
        auto* check = llvm::BasicBlock::Create(function_.getContext(), "vector.check", &function_);
        auto* finish = llvm::BasicBlock::Create(function_.getContext(), "vector.done", &function_);
        auto* scalar_start = llvm::BasicBlock::Create(function_.getContext(), "items.rest", &function_);
        make_blocks(*check);
        at_.SetInsertPoint(check);
        llvm::Value* covered = at_.CreateAnd(plan_.count, at_.getInt64(~uint64_t{lanes_.width() - 1}));
        llvm::Value* possible = at_.CreateAnd(at_.CreateICmpNE(covered, plan_.start), bases_are_small());
        if (shapes_.depends_on_lanes())
            possible = at_.CreateAnd(possible, bases_are_aligned());
        llvm::Instruction* const enter = at_.CreateCondBr(possible, begin_[plan_.header], scalar_start);
        lanes_.set_row({.before = enter, .begin = plan_.start, .end = covered});

        emit_blocks(*check, covered, *finish);
        move_rare_values(lanes_.rare_blocks(), *begin_[plan_.header], *finish);
        at_.SetInsertPoint(finish);
        at_.CreateCondBr(at_.CreateICmpEQ(covered, plan_.count), plan_.exit, scalar_start);
        at_.SetInsertPoint(scalar_start);
        llvm::PHINode* start = at_.CreatePHI(plan_.index->getType(), 2);
        start->addIncoming(plan_.start, check);
        start->addIncoming(covered, finish);
        at_.CreateBr(plan_.header);
        plan_.index->setIncomingValue(static_cast<unsigned>(plan_.index->getBasicBlockIndex(plan_.preheader)), start);
        plan_.header->replacePhiUsesWith(plan_.preheader, scalar_start);
    }

    void emit_sub_group(llvm::BasicBlock* otherwise) {
        auto* check = llvm::BasicBlock::Create(function_.getContext(), "sub_group.check", &function_);
        make_blocks(*check);
        at_.SetInsertPoint(check);
        if (otherwise && !shapes_.assumed_small().empty())
            at_.CreateCondBr(bases_are_small(), begin_[plan_.header], otherwise);
        else
            at_.CreateBr(begin_[plan_.header]);
        lanes_.set_scalar(plan_.index, at_.getInt64(0));
        emit_blocks(*check, nullptr, *plan_.exit);
        plan_.header->removePredecessor(plan_.preheader);
    }

    [[nodiscard]] const std::set<std::string>& serial_calls() const { return lanes_.serial_calls(); }

private:
    // Control goes from the loop's preheader to `check`.
    void make_blocks(llvm::BasicBlock& check) {
        for (llvm::BasicBlock* block : plan_.blocks)
            if (!plan_.is_masked(block))
                begin_[block] =
                    llvm::BasicBlock::Create(function_.getContext(), block->getName() + ".vector", &function_);
        make_private_variables();
        plan_.preheader->getTerminator()->replaceSuccessorWith(plan_.header, &check);
    }

    // `covered`: where the index ends; null when the code runs once, without a loop.
    void emit_blocks(llvm::BasicBlock& check, llvm::Value* covered, llvm::BasicBlock& finish) {
        for (llvm::BasicBlock* block : plan_.blocks)
            if (!plan_.is_masked(block))
                emit_uniform_phis(*block, check);
        for (llvm::BasicBlock* block : plan_.blocks)
            if (!plan_.is_masked(block))
                emit_uniform_block(*block, covered, finish);
        complete_phis();
    }

    // The uniform skeleton ------------------------------------------------------------------------------

    // No work-item's 32-bit index may wrap around. A base may be poison where a guard would have excluded it.
    // Increments that are assumed to be 1 are.
    llvm::Value* bases_are_small() {
        llvm::Value* holds = indices_do_not_wrap(at_, shapes_.assumed_small(), *plan_.count);
        for (llvm::Value* increment : shapes_.assumed_one())
            holds = at_.CreateAnd(
                holds, at_.CreateICmpEQ(at_.CreateFreeze(increment), llvm::ConstantInt::get(increment->getType(), 1)));
        return holds;
    }

    // The lanes of a vector are in one block of work-items (item_blocks.cpp).
    llvm::Value* bases_are_aligned() {
        return bases_are_multiples(at_, shapes_.assumed_aligned(), *plan_.start, lanes_.width());
    }

    void make_private_variables() {
        llvm::IRBuilder<> at(&*function_.getEntryBlock().begin());
        for (const llvm::AllocaInst* variable : plan_.privates.all()) {
            auto* const type = llvm::ArrayType::get(at.getInt8Ty(), plan_.privates.bytes_of_all_lanes(*variable));
            llvm::AllocaInst* all = at.CreateAlloca(type);
            all->setAlignment(plan_.privates.alignment(*variable));
            lanes_.set_scalar(variable, all);
        }
    }

    void emit_uniform_phis(llvm::BasicBlock& block, llvm::BasicBlock& check) {
        at_.SetInsertPoint(begin_[&block]);
        for (llvm::PHINode& phi : block.phis()) {
            if (&phi == plan_.index && plan_.kind == LoopKind::sub_group)
                continue;
            const bool is_strided = shapes_.of(&phi).is_strided();
            llvm::PHINode* made =
                at_.CreatePHI(is_strided ? phi.getType() : lanes_.wide(phi.getType()), 2, phi.getName());
            lanes_.made(&phi) = made;
            if (&phi == plan_.index)
                made->addIncoming(plan_.start, &check);
            else
                phis_.push_back(&phi);
        }
    }

    void emit_uniform_block(llvm::BasicBlock& block, llvm::Value* covered, llvm::BasicBlock& finish) {
        at_.SetInsertPoint(begin_[&block]);
        emit_body(block, nullptr);
        if (&block == plan_.latch && !covered) {
            at_.CreateBr(&finish);
        } else if (&block == plan_.latch) {
            auto* index = llvm::cast<llvm::PHINode>(lanes_.made(plan_.index));
            llvm::Value* next = at_.CreateAdd(index, at_.getInt64(lanes_.width()), "", true, true);
            index->addIncoming(next, at_.GetInsertBlock());
            llvm::Instruction* back = at_.CreateCondBr(at_.CreateICmpEQ(next, covered), &finish, begin_[plan_.header]);
            llvm::LLVMContext& context = function_.getContext();
            llvm::MDNode* id = llvm::MDNode::getDistinct(
                context, {nullptr, llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable")),
                          llvm::MDNode::get(context, llvm::MDString::get(context, items_tag))});
            id->replaceOperandWith(0, id);
            back->setMetadata(llvm::LLVMContext::MD_loop, id);
        } else if (const auto chunk = plan_.chunks.find(&block); chunk != plan_.chunks.end()) {
            emit_chunk(block, chunk->second);
        } else {
            const auto* branch = llvm::cast<llvm::BranchInst>(block.getTerminator());
            if (branch->isConditional())
                at_.CreateCondBr(lanes_.scalar(branch->getCondition()), begin_[branch->getSuccessor(0)],
                                 begin_[branch->getSuccessor(1)]);
            else
                at_.CreateBr(begin_[branch->getSuccessor(0)]);
        }
        end_[&block] = at_.GetInsertBlock();
    }

    void emit_chunk(llvm::BasicBlock& block, const MaskedChunk& chunk) {
        set_edges(block, nullptr);
        emit_in_order(chunk.blocks, plan_.loops->getLoopFor(&block), block);
        for (llvm::PHINode& phi : chunk.join->phis()) {
            auto from_chunk = [&](llvm::BasicBlock* from) { return from == &block || chunk.blocks.contains(from); };
            if (!shapes_.of(&phi).is_strided()) {
                blended_[{&block, &phi}] = blend(phi, from_chunk);
                continue;
            }
            for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
                if (from_chunk(phi.getIncomingBlock(i)))
                    blended_[{&block, &phi}] = lanes_.scalar(phi.getIncomingValue(i));
        }
        at_.CreateBr(begin_[chunk.join]);
    }

    void complete_phis() {
        for (llvm::PHINode* phi : phis_) {
            auto* made = llvm::cast<llvm::PHINode>(lanes_.made(phi));
            for (auto& [block, chunk] : plan_.chunks)
                if (chunk.join == phi->getParent())
                    made->addIncoming(blended_[{block, phi}], end_[block]);
            for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
                llvm::BasicBlock* from = phi->getIncomingBlock(i);
                if (plan_.is_masked(from) || plan_.chunks.contains(from))
                    continue;
                at_.SetInsertPoint(end_[from]->getTerminator());
                made->addIncoming(lanes_.kept(phi->getIncomingValue(i), phi), end_[from]);
            }
        }
    }

    // Masked parts ----------------------------------------------------------------------------------------

    // The value that arrives on an edge. When the edge leaves a masked loop, it is the value that each lane had when it left.
    llvm::Value* arriving(llvm::Value* value, llvm::BasicBlock* to) {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
        const llvm::Loop* inside = instruction && plan_.loop->contains(instruction)
                                       ? plan_.loops->getLoopFor(instruction->getParent())
                                       : nullptr;
        if (inside && plan_.masked.contains(inside->getHeader()) && !inside->contains(to))
            if (const auto found = left_.find(value); found != left_.end())
                return found->second;
        return lanes_.vector(value);
    }

    void set_edges(llvm::BasicBlock& block, llvm::Value* mask) {
        const auto* branch = llvm::cast<llvm::BranchInst>(block.getTerminator());
        if (!branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1)) {
            edges_[{&block, branch->getSuccessor(0)}] = mask ? mask : lanes_.all_lanes();
            return;
        }
        llvm::Value* condition = lanes_.vector(branch->getCondition());
        edges_[{&block, branch->getSuccessor(0)}] = lanes_.both(mask, condition);
        edges_[{&block, branch->getSuccessor(1)}] = lanes_.both(mask, at_.CreateNot(condition));
    }

    // The value of a phi where lanes from several blocks in `from` meet.
    llvm::Value* blend(llvm::PHINode& phi, llvm::function_ref<bool(llvm::BasicBlock*)> from) {
        llvm::Value* result = nullptr;
        for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
            llvm::BasicBlock* block = phi.getIncomingBlock(i);
            if (!from(block))
                continue;
            llvm::Value* value = arriving(phi.getIncomingValue(i), phi.getParent());
            result = result ? lanes_.chosen(edges_[{block, phi.getParent()}], value, result, *phi.getType()) : value;
        }
        return result;
    }

    void emit_masked_block(llvm::BasicBlock& block) {
        llvm::Value* mask = nullptr;
        for (llvm::BasicBlock* before :
             llvm::SmallSetVector<llvm::BasicBlock*, 4>(llvm::pred_begin(&block), llvm::pred_end(&block)))
            mask = lanes_.either(mask, edges_[{before, &block}]);
        for (llvm::PHINode& phi : block.phis()) {
            if (shapes_.of(&phi).is_strided())
                lanes_.made(&phi) = lanes_.scalar(phi.getIncomingValue(0));
            else
                lanes_.made(&phi) = blend(phi, [](llvm::BasicBlock*) { return true; });
        }
        if (is_worth_skipping(block, plan_, shapes_, lanes_.width()))
            emit_unless_skipped(block, mask);
        else
            emit_body(block, mask);
        set_edges(block, mask);
    }

    void emit_unless_skipped(llvm::BasicBlock& block, llvm::Value* mask) {
        SkippingBranch around(at_, lanes_.any(mask));
        emit_body(block, mask);
        around.end();
        const auto needed = needed_behind(block, shapes_);
        for (llvm::Instruction& instruction : block)
            if (!llvm::isa<llvm::PHINode>(instruction) && !instruction.getType()->isVoidTy() &&
                needed.contains(&instruction)) {
                llvm::Value*& made = lanes_.made(&instruction);
                made = around.merged(made);
            }
    }

    // Code behind the region reads its masks, and those of its values that meet others where it ends.
    void emit_region_unless_skipped(const SkippedRegion& region, llvm::ArrayRef<llvm::BasicBlock*> units,
                                    const llvm::Loop* level) {
        SkippingBranch around(at_, lanes_.any(edges_[{region.before, region.begin}]));
        emit_units(nullptr, units, region.blocks, level, region.begin);
        around.end();
        llvm::SmallSetVector<llvm::Value*, 4> needed;
        const llvm::SmallSetVector<llvm::BasicBlock*, 4> ends(llvm::pred_begin(region.join),
                                                              llvm::pred_end(region.join));
        for (llvm::BasicBlock* last : ends) {
            if (!region.blocks.contains(last))
                continue;
            llvm::Value*& edge = edges_[{last, region.join}];
            edge = around.merged(edge, lanes_.no_lanes());
            for (llvm::PHINode& phi : region.join->phis())
                if (auto* value = llvm::dyn_cast<llvm::Instruction>(phi.getIncomingValueForBlock(last));
                    value && region.blocks.contains(value->getParent()))
                    needed.insert(value);
        }
        for (llvm::Value* value : needed) {
            llvm::Value*& made = lanes_.made(value);
            made = around.merged(made);
            if (const auto left = left_.find(value); left != left_.end())
                left->second = around.merged(left->second);
        }
    }

    void emit_body(llvm::BasicBlock& block, llvm::Value* mask) {
        for (llvm::Instruction& instruction : block)
            if (!llvm::isa<llvm::PHINode>(instruction) && !instruction.isTerminator())
                lanes_.emit(instruction, mask);
    }

    void emit_in_order(const BlockSet& blocks, const llvm::Loop* level, llvm::BasicBlock& before) {
        emit_units(&before, in_topological_order(blocks, *plan_.loops, level, before), blocks, level);
    }

    // `before`: the block that was emitted last; null where no region begins behind it. The blocks of a region follow it at once in this order.
    // `entered`: the first block of the region that is being emitted.
    void emit_units(llvm::BasicBlock* before, llvm::ArrayRef<llvm::BasicBlock*> units, const BlockSet& blocks,
                    const llvm::Loop* level, const llvm::BasicBlock* entered = nullptr) {
        while (!units.empty()) {
            auto region =
                before ? region_worth_skipping(*before, blocks, plan_, shapes_, lanes_.width()) : std::nullopt;
            if (!region && units.front() != entered)
                region = uniform_side_worth_skipping(units, blocks, level, plan_, shapes_, lanes_.width());
            if (region) {
                const auto inside =
                    units.take_while([&](llvm::BasicBlock* unit) { return region->blocks.contains(unit); });
                emit_region_unless_skipped(*region, inside, level);
                units = units.drop_front(inside.size());
                before = nullptr;
                continue;
            }
            llvm::BasicBlock* const unit = units.consume_front();
            llvm::Loop* const inner = child_loop(*plan_.loops, level, *unit);
            before = inner ? nullptr : unit;
            if (inner)
                emit_masked_loop(*inner);
            else
                emit_masked_block(*unit);
        }
    }

    // The condition on which all active lanes leave the loop, when it has one exit, at its end; null when they leave one by one.
    llvm::BranchInst* common_exit(const llvm::Loop& loop) const {
        auto* branch = llvm::dyn_cast<llvm::BranchInst>(loop.getLoopLatch()->getTerminator());
        const bool is_common = loop.getExitingBlock() == loop.getLoopLatch() && branch && branch->isConditional() &&
                               shapes_.of(branch->getCondition()).is_uniform();
        return is_common ? branch : nullptr;
    }

    // Whether `loop` continues, where all lanes leave it at once. It never continues when no lane has entered it, because the values of its
    // condition are then undefined.
    llvm::Value* goes_on(const llvm::Loop& loop, const llvm::BranchInst& exit, llvm::Value* any_entering) {
        llvm::Value* condition = lanes_.scalar(exit.getCondition());
        if (exit.getSuccessor(0) != loop.getHeader())
            condition = at_.CreateNot(condition);
        return at_.CreateSelect(any_entering, condition, at_.getFalse());
    }

    static Edge edge_of(const llvm::Loop::Edge& edge) {
        return {const_cast<llvm::BasicBlock*>(edge.first), edge.second};
    }

    // Whether a lane leaves the loop in the iteration whose masks are in edges_.
    llvm::Value* any_leaving(const llvm::Loop& loop, llvm::ArrayRef<llvm::Loop::Edge> exits) {
        llvm::Value *some = nullptr, *all = at_.getFalse();
        for (const llvm::Loop::Edge& exit : exits) {
            const auto* const branch = exit_of_all_lanes(loop, exit, *plan_.loops, shapes_);
            if (branch == nullptr) {
                some = lanes_.either(some, edges_[edge_of(exit)]);
                continue;
            }
            llvm::Value* const condition = at_.CreateFreeze(lanes_.scalar(branch->getCondition()));
            all = at_.CreateOr(all, branch->getSuccessor(0) == exit.second ? condition : at_.CreateNot(condition));
        }
        return some ? at_.CreateOr(lanes_.any(some), all) : all;
    }

    // Runs while any lane is active. Lanes that have left keep the values that they had then.
    void emit_masked_loop(llvm::Loop& loop) {
        llvm::BasicBlock* header = loop.getHeader();
        llvm::BasicBlock* latch = loop.getLoopLatch();
        llvm::BasicBlock* before = loop.getLoopPreheader();
        llvm::Value* entering = edges_[{before, header}];
        llvm::DenseMap<llvm::PHINode*, llvm::Value*> initial;
        for (llvm::PHINode& phi : header->phis())
            initial[&phi] = lanes_.kept(phi.getIncomingValueForBlock(before), &phi);
        const llvm::BranchInst* const together = common_exit(loop);
        llvm::Value* const any_entering = together ? lanes_.any(entering) : nullptr;
        llvm::SmallVector<llvm::Loop::Edge> exits;
        loop.getExitEdges(exits);
        const bool is_left_rarely = workgroup::is_left_rarely(loop, exits, plan_, shapes_, masks_);
        std::optional<SkippingBranch> around;
        if (is_worth_skipping(loop, *entering, plan_, shapes_, lanes_.width()) ||
            (is_left_rarely && !is_of_all_lanes(*entering)))
            around.emplace(at_, any_entering ? any_entering : lanes_.any(entering));
        llvm::BasicBlock* const start = at_.GetInsertBlock();
        auto* body = llvm::BasicBlock::Create(function_.getContext(), "lanes", &function_);
        auto* after = llvm::BasicBlock::Create(function_.getContext(), "lanes.done", &function_);
        at_.CreateBr(body);
        at_.SetInsertPoint(body);
        const auto make_phi = [&](llvm::Value* from) {
            llvm::PHINode* made = at_.CreatePHI(from->getType(), 2);
            made->addIncoming(from, start);
            return made;
        };
        llvm::PHINode* const active = together ? nullptr : make_phi(entering);
        llvm::Value* const mask = together ? entering : active;
        llvm::SmallVector<std::pair<llvm::PHINode*, llvm::PHINode*>> headers;
        for (llvm::PHINode& phi : header->phis()) {
            llvm::PHINode* made = make_phi(initial[&phi]);
            headers.emplace_back(&phi, made);
            lanes_.made(&phi) = made;
        }
        llvm::SmallVector<std::pair<Edge, llvm::PHINode*>> left_by;
        if (exits.size() > 1)
            for (const llvm::Loop::Edge& exit : exits)
                left_by.push_back({edge_of(exit), make_phi(lanes_.no_lanes())});
        llvm::SmallVector<std::pair<llvm::Instruction*, llvm::PHINode*>> live_out;
        for (llvm::BasicBlock* block : loop.blocks())
            for (llvm::Instruction& instruction : *block)
                if (llvm::any_of(instruction.users(),
                                 [&](llvm::User* user) { return !loop.contains(llvm::cast<llvm::Instruction>(user)); }))
                    live_out.emplace_back(&instruction,
                                          make_phi(llvm::Constant::getNullValue(lanes_.wide(instruction.getType()))));

        emit_body(*header, mask);
        set_edges(*header, mask);
        emit_in_order(BlockSet(loop.block_begin(), loop.block_end()), &loop, *header);
        llvm::Value* staying = edges_[{latch, header}];
        llvm::SmallVector<llvm::Value*> following;
        for (auto [phi, made] : headers)
            following.push_back(lanes_.kept(phi->getIncomingValueForBlock(latch), phi));
        std::optional<LeavingLanes> leaving;
        if (is_left_rarely) {
            answer_questions(*mask);
            leaving.emplace(at_, any_leaving(loop, exits));
        }
        llvm::BasicBlock* const end = leaving ? leaving->next() : at_.GetInsertBlock();
        for (auto [header_phi, value] : llvm::zip(headers, following))
            header_phi.second->addIncoming(value, end);
        const auto to_next = [&](llvm::PHINode* made, llvm::Value* now) {
            made->addIncoming(leaving ? leaving->merged(made, now) : now, end);
        };
        for (auto [instruction, made] : live_out) {
            const bool is_inner = plan_.loops->getLoopFor(instruction->getParent()) != &loop;
            llvm::Value* current = is_inner ? left_[instruction] : lanes_.vector(instruction);
            llvm::Value* kept = together ? current : lanes_.chosen(mask, current, made, *instruction->getType());
            to_next(made, kept);
            left_[instruction] = kept;
        }
        for (auto [edge, made] : left_by) {
            edges_[edge] = lanes_.either(made, edges_[edge]);
            to_next(made, edges_[edge]);
        }
        if (exits.size() == 1)
            edges_[edge_of(exits[0])] = entering;
        if (together) {
            at_.CreateCondBr(goes_on(loop, *together, any_entering), body, after);
        } else {
            to_next(active, staying);
            at_.CreateCondBr(lanes_.any(staying), leaving ? end : body, after);
        }
        if (leaving)
            llvm::BranchInst::Create(body, end);
        at_.SetInsertPoint(after);
        if (!around)
            return;
        around->end();
        // No lane reads what a skipped loop would have made. A scalar may decide a branch, so it must be some number.
        const auto merge = [&](llvm::Value*& made) {
            made = around->merged(made, llvm::Constant::getNullValue(made->getType()));
        };
        for (const auto& [instruction, made] : live_out) {
            merge(left_[instruction]);
            if (shapes_.of(instruction).is_strided())
                merge(lanes_.made(instruction));
        }
        for (const auto& [edge, made] : left_by)
            merge(edges_[edge]);
    }

    const LanePlan& plan_;
    const LaneShapes& shapes_;
    const Masks masks_;
    llvm::Function& function_;
    LaneCode lanes_;
    llvm::IRBuilder<>& at_;

    llvm::DenseMap<const llvm::Value*, llvm::Value*> left_;  // values of lanes when they left masked loops
    std::map<Edge, llvm::Value*> edges_;  // masks
    std::map<std::pair<llvm::BasicBlock*, llvm::PHINode*>, llvm::Value*> blended_;
    llvm::DenseMap<llvm::BasicBlock*, llvm::BasicBlock*> begin_, end_;
    llvm::SmallVector<llvm::PHINode*> phis_;
};

}  // namespace

std::set<std::string> emit_vector_loop(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                                       unsigned width, Masks masks) {
    VectorLoop loop(plan, shapes, accesses, width, masks, nullptr);
    loop.emit();
    return loop.serial_calls();
}

void emit_sub_group(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                    const SubGroupLanes& sub_group, llvm::BasicBlock* otherwise) {
    VectorLoop(plan, shapes, accesses, sub_group.size, Masks::cheap, &sub_group).emit_sub_group(otherwise);
}

}  // namespace polder::compiler::workgroup
