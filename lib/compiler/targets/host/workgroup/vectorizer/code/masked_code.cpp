// In a region with a branch around it, what code behind the region reads is merged with what it is where the region was skipped.
#include "masked_code.h"

#include "leaving_lanes.h"
#include "targets/host/workgroup/vectorizer/analysis/masked_order.h"
#include "targets/host/workgroup/vectorizer/analysis/needed_behind.h"
#include "whole_iterations.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>

namespace polder::compiler::workgroup {

namespace {

std::pair<llvm::BasicBlock*, llvm::BasicBlock*> edge_of(const llvm::Loop::Edge& edge) {
    return {const_cast<llvm::BasicBlock*>(edge.first), edge.second};
}

// Whether the instruction must not run for lanes that are not active, where at least one is.
bool needs_mask(const llvm::Instruction& instruction, const LaneShapes& shapes) {
    return llvm::isa<llvm::LoadInst>(instruction) ? !shapes.of(&instruction).is_uniform()
                                                  : !llvm::isSafeToSpeculativelyExecute(&instruction);
}

}  // namespace

// The value that arrives on an edge. When the edge leaves a masked loop, it is the value that each lane had when it left.
llvm::Value* MaskedCode::arriving(llvm::Value* value, llvm::BasicBlock* to) {
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
    const llvm::Loop* inside =
        instruction && plan_.loop->contains(instruction) ? plan_.loops->getLoopFor(instruction->getParent()) : nullptr;
    if (inside && plan_.masked.contains(inside->getHeader()) && !inside->contains(to))
        if (const auto found = left_.find(value); found != left_.end())
            return found->second;
    return lanes_.vector(value);
}

void MaskedCode::set_edges(llvm::BasicBlock& block, llvm::Value* mask) {
    const auto* branch = llvm::cast<llvm::BranchInst>(block.getTerminator());
    if (!branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1)) {
        edges_[{&block, branch->getSuccessor(0)}] = mask ? mask : lanes_.all_lanes();
        return;
    }
    llvm::Value* condition = lanes_.vector(branch->getCondition());
    edges_[{&block, branch->getSuccessor(0)}] = lanes_.both(mask, condition);
    edges_[{&block, branch->getSuccessor(1)}] = lanes_.both(mask, at_.CreateNot(condition));
}

// The value of a phi where lanes from several blocks in `from` meet. `others`: of lanes that come from elsewhere; null: no matter which.
llvm::Value* MaskedCode::blend(llvm::PHINode& phi, llvm::function_ref<bool(llvm::BasicBlock*)> from,
                               llvm::Value* others) {
    llvm::Value* result = others;
    llvm::SmallPtrSet<llvm::BasicBlock*, 4> sides_seen;
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
        llvm::BasicBlock* block = phi.getIncomingBlock(i);
        if (!from(block))
            continue;
        const auto sides = before_sides_.find({block, phi.getParent()});
        const bool has_met = sides != before_sides_.end();
        if (has_met &&
            (!sides_seen.insert(sides->second).second || (others && within_others_.contains({sides->second, &phi}))))
            continue;
        llvm::Value* value = has_met ? met_[{sides->second, &phi}] : arriving(phi.getIncomingValue(i), phi.getParent());
        result = result ? lanes_.chosen(edges_[{block, phi.getParent()}], value, result, *phi.getType()) : value;
    }
    return result;
}

// Sides that have met have one mask.
llvm::Value* MaskedCode::mask_of_edges_to(llvm::BasicBlock& block) {
    llvm::SmallSetVector<llvm::Value*, 4> masks;
    for (llvm::BasicBlock* before : llvm::predecessors(&block))
        masks.insert(edges_[{before, &block}]);
    llvm::Value* any = nullptr;
    for (llvm::Value* mask : masks)
        any = lanes_.either(any, mask);
    return any;
}

void MaskedCode::emit_masked_block(llvm::BasicBlock& block) {
    llvm::Value* const mask = mask_of_edges_to(block);
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
    block_masks_[&block] = mask;
    set_edges(block, mask);
}

void MaskedCode::emit_unless_skipped(llvm::BasicBlock& block, llvm::Value* mask) {
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

// Lanes that are not in the region have values at its join, too: those with which the block before it leads there, and those of regions around it that
// end there. Lanes of the region replace them where it ends. So an if in an if in an if passes on one value, not one for each depth.
void MaskedCode::emit_region_unless_skipped(const SkippedRegion& region, llvm::ArrayRef<llvm::BasicBlock*> units,
                                            const llvm::Loop* level) {
    llvm::Value* const entering = edges_[{region.before, region.begin}];
    const auto mask_before = block_masks_.find(region.before);
    const bool has_before = llvm::is_contained(llvm::successors(region.before), region.join) &&
                            mask_before != block_masks_.end() && !before_sides_.contains({region.before, region.join});
    llvm::Value* const both = has_before ? mask_before->second : entering;
    struct Arrival {
        llvm::PHINode* phi;
        llvm::Value *around,
            *others;  // of lanes in a region around this one, and of all that are not in this one; or null
    };
    llvm::SmallVector<Arrival, 4> arrivals;
    for (llvm::PHINode& phi : region.join->phis()) {
        if (shapes_.of(&phi).is_strided())
            continue;
        llvm::Value* const around = others_.lookup(&phi);
        llvm::Value* others = around;
        if (has_before) {
            others = arriving(phi.getIncomingValueForBlock(region.before), region.join);
            if (around && both)
                others = lanes_.chosen(both, others, around, *phi.getType());
        }
        arrivals.push_back({&phi, around, others});
    }
    SkippingBranch branch(at_, lanes_.any(entering));
    for (const Arrival& arrival : arrivals)
        others_[arrival.phi] = arrival.others;
    emit_units(nullptr, units, region.blocks, level, region.begin);
    const auto is_inside = [&](const llvm::BasicBlock* from) { return region.blocks.contains(from); };
    for (const Arrival& arrival : arrivals)
        met_[{region.begin, arrival.phi}] = blend(*arrival.phi, is_inside, others_[arrival.phi]);
    branch.end();
    for (const Arrival& arrival : arrivals) {
        llvm::Value*& met = met_[{region.begin, arrival.phi}];
        met = arrival.others ? branch.merged(met, arrival.others) : branch.merged(met);
        others_[arrival.phi] = arrival.around ? met : nullptr;
        if (arrival.around)
            within_others_.insert({region.begin, arrival.phi});
    }
    llvm::SmallSetVector<llvm::Value*, 4> same;  // for all lanes
    for (llvm::BasicBlock* last : llvm::predecessors(region.join)) {
        if (!is_inside(last) && !(has_before && last == region.before))
            continue;
        edges_[{last, region.join}] = both ? both : lanes_.all_lanes();
        before_sides_[{last, region.join}] = region.begin;
        for (llvm::PHINode& phi : region.join->phis())
            if (auto* value = llvm::dyn_cast<llvm::Instruction>(phi.getIncomingValueForBlock(last));
                value && shapes_.of(&phi).is_strided() && is_inside(value->getParent()))
                same.insert(value);
    }
    for (llvm::Value* value : same) {
        llvm::Value*& made = lanes_.made(value);
        made = branch.merged(made);
        if (const auto left = left_.find(value); left != left_.end())
            left->second = branch.merged(left->second);
    }
}

// All lanes in the mask of the block before take one side. No lane may be in it: then the condition is some number, and any side runs for none.
void MaskedCode::emit_sides(const UniformSides& sides, const llvm::Loop* level) {
    struct Arrival {
        llvm::BasicBlock* from = nullptr;
        llvm::SmallVector<llvm::Value*, 4> values;  // of the phis, in their order
    };
    llvm::Value* const mask = block_masks_.lookup(sides.before);
    llvm::SmallDenseMap<llvm::BasicBlock*, llvm::BasicBlock*> begin;
    for (llvm::BasicBlock* block : sides.uniform)
        begin[block] = llvm::BasicBlock::Create(function_.getContext(), block->getName() + ".side", &function_);
    begin[sides.join] = llvm::BasicBlock::Create(function_.getContext(), "sides.meet", &function_);
    std::map<llvm::BasicBlock*, llvm::SmallVector<Arrival, 4>> arrivals;
    const auto arrive = [&](llvm::BasicBlock* to, llvm::function_ref<llvm::Value*(llvm::PHINode&)> value_of) {
        Arrival arrival;
        for (llvm::PHINode& phi : to->phis())
            arrival.values.push_back(value_of(phi));
        arrival.from = at_.GetInsertBlock();
        arrivals[to].push_back(std::move(arrival));
    };
    const auto leave = [&](llvm::BasicBlock& block) {
        const auto kept = [&](llvm::PHINode& phi) { return lanes_.kept(phi.getIncomingValueForBlock(&block), &phi); };
        const auto* const branch = llvm::cast<llvm::BranchInst>(block.getTerminator());
        llvm::BasicBlock* const first = branch->getSuccessor(0);
        llvm::BasicBlock* const last = branch->getSuccessor(branch->getNumSuccessors() - 1);
        llvm::Value* const condition =
            first == last ? nullptr : at_.CreateFreeze(lanes_.scalar(branch->getCondition()));
        arrive(first, kept);
        if (condition == nullptr) {
            at_.CreateBr(begin[first]);
            return;
        }
        arrive(last, kept);
        at_.CreateCondBr(condition, begin[first], begin[last]);
    };
    const auto begin_with = [&](llvm::BasicBlock& block, llvm::function_ref<void(llvm::PHINode&, llvm::Value*)> use) {
        at_.SetInsertPoint(begin[&block]);
        const llvm::ArrayRef<Arrival> arrived = arrivals[&block];
        for (auto [number, phi] : llvm::enumerate(block.phis())) {
            llvm::PHINode* const made = at_.CreatePHI(arrived.front().values[number]->getType(), 2, phi.getName());
            for (const Arrival& arrival : arrived)
                made->addIncoming(arrival.values[number], arrival.from);
            use(phi, made);
        }
    };
    leave(*sides.before);
    const auto others = others_;
    for (llvm::BasicBlock* block : sides.uniform) {
        others_ = others;  // what regions of another side add to them is not known here
        begin_with(*block, [&](llvm::PHINode& phi, llvm::Value* value) { lanes_.made(&phi) = value; });
        emit_body(*block, mask);
        const auto chunk = sides.chunks.find(block);
        if (chunk == sides.chunks.end()) {
            block_masks_[block] = mask;
            leave(*block);
            continue;
        }
        emit_chunk(*block, chunk->second, mask, level);
        arrive(chunk->second.join, [&](llvm::PHINode& phi) { return arriving_from(*block, chunk->second, phi); });
        at_.CreateBr(begin[chunk->second.join]);
    }
    others_ = others;
    begin_with(*sides.join, [&](llvm::PHINode& phi, llvm::Value* value) { met_[{sides.before, &phi}] = value; });
    for (llvm::BasicBlock* last : llvm::predecessors(sides.join))
        if (last == sides.before || sides.blocks.contains(last)) {
            before_sides_[{last, sides.join}] = sides.before;
            edges_[{last, sides.join}] = mask ? mask : lanes_.all_lanes();
        }
}

void MaskedCode::emit_body(llvm::BasicBlock& block, llvm::Value* mask) {
    for (llvm::Instruction& instruction : block)
        if (!llvm::isa<llvm::PHINode>(instruction) && !instruction.isTerminator())
            lanes_.emit(instruction, mask);
}

void MaskedCode::emit_chunk(llvm::BasicBlock& leader, const MaskedChunk& chunk, llvm::Value* mask,
                            const llvm::Loop* level) {
    block_masks_[&leader] = mask;
    set_edges(leader, mask);
    emit_in_order(chunk.blocks, level, leader);
}

llvm::Value* MaskedCode::arriving_from(llvm::BasicBlock& leader, const MaskedChunk& chunk, llvm::PHINode& phi) {
    const auto is_from_chunk = [&](llvm::BasicBlock* from) { return from == &leader || chunk.blocks.contains(from); };
    if (!shapes_.of(&phi).is_strided())
        return blend(phi, is_from_chunk);
    llvm::Value* scalar = nullptr;
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
        if (is_from_chunk(phi.getIncomingBlock(i)))
            scalar = lanes_.scalar(phi.getIncomingValue(i));
    return scalar;
}

void MaskedCode::emit_in_order(const BlockSet& blocks, const llvm::Loop* level, llvm::BasicBlock& before) {
    emit_units(&before, in_topological_order(blocks, *plan_.loops, level, before), blocks, level);
}

// `before`: the block that was emitted last; null where no region begins behind it. The blocks of a region follow it at once in this order.
// `entered`: the first block of the region that is being emitted.
void MaskedCode::emit_units(llvm::BasicBlock* before, llvm::ArrayRef<llvm::BasicBlock*> units, const BlockSet& blocks,
                            const llvm::Loop* level, const llvm::BasicBlock* entered) {
    while (!units.empty()) {
        const auto sides =
            before ? uniform_sides_behind(*before, blocks, level, plan_, shapes_, lanes_.width()) : std::nullopt;
        if (sides) {
            emit_sides(*sides, level);
            units = units.drop_while([&](llvm::BasicBlock* unit) { return sides->blocks.contains(unit); });
            before = nullptr;
            continue;
        }
        auto region = before ? region_worth_skipping(*before, blocks, plan_, shapes_, lanes_.width()) : std::nullopt;
        if (!region && units.front() != entered)
            region = side_worth_skipping(units, blocks, level, plan_, shapes_, lanes_.width());
        if (region) {
            const auto inside = units.take_while([&](llvm::BasicBlock* unit) { return region->blocks.contains(unit); });
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
llvm::BranchInst* MaskedCode::common_exit(const llvm::Loop& loop) const {
    auto* branch = llvm::dyn_cast<llvm::BranchInst>(loop.getLoopLatch()->getTerminator());
    const bool is_common = loop.getExitingBlock() == loop.getLoopLatch() && branch && branch->isConditional() &&
                           shapes_.of(branch->getCondition()).is_uniform();
    return is_common ? branch : nullptr;
}

// Whether `loop` continues, where all lanes leave it at once. It never continues when no lane has entered it, because the values of its
// condition are then undefined.
llvm::Value* MaskedCode::goes_on(const llvm::Loop& loop, const llvm::BranchInst& exit, llvm::Value* any_entering) {
    llvm::Value* condition = lanes_.scalar(exit.getCondition());
    if (exit.getSuccessor(0) != loop.getHeader())
        condition = at_.CreateNot(condition);
    return at_.CreateSelect(any_entering, condition, at_.getFalse());
}

// Whether a lane leaves the loop in the iteration whose masks are in edges_.
llvm::Value* MaskedCode::any_leaving(const llvm::Loop& loop, llvm::ArrayRef<llvm::Loop::Edge> exits) {
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

// The iterations that all lanes in `entering` execute (whole_iterations.h). At least one lane is in it. `values`: of the header's phis, before and after them.
void MaskedCode::emit_whole_iterations(llvm::BasicBlock& block, const OrderedExit& exit, llvm::Value* entering,
                                       llvm::DenseMap<llvm::PHINode*, llvm::Value*>& values) {
    lanes_.made(exit.counter) = values[exit.counter];
    llvm::Value* const count =
        whole_iterations(at_, exit, lanes_.vector(exit.counter), lanes_.vector(exit.bound), entering);
    llvm::BasicBlock* const start = at_.GetInsertBlock();
    auto* const body = llvm::BasicBlock::Create(function_.getContext(), "lanes.whole", &function_);
    auto* const after = llvm::BasicBlock::Create(function_.getContext(), "lanes.last", &function_);
    llvm::Constant* const none = llvm::Constant::getNullValue(count->getType());
    at_.CreateCondBr(at_.CreateICmpNE(count, none), body, after);
    at_.SetInsertPoint(body);
    llvm::PHINode* const done = at_.CreatePHI(count->getType(), 2);
    done->addIncoming(none, start);
    llvm::SmallVector<std::pair<llvm::PHINode*, llvm::PHINode*>> headers;
    for (llvm::PHINode& phi : block.phis()) {
        llvm::PHINode* const made = at_.CreatePHI(values[&phi]->getType(), 2);
        made->addIncoming(values[&phi], start);
        headers.emplace_back(&phi, made);
        lanes_.made(&phi) = made;
    }
    for (llvm::Instruction& instruction : block)
        if (!llvm::isa<llvm::PHINode>(instruction) && !instruction.isTerminator())
            lanes_.emit(instruction, needs_mask(instruction, shapes_) ? entering : nullptr);
    llvm::SmallVector<llvm::Value*> following;
    for (const auto& [phi, made] : headers)
        following.push_back(lanes_.kept(phi->getIncomingValueForBlock(&block), phi));
    llvm::BasicBlock* const end = at_.GetInsertBlock();
    llvm::Value* const next = at_.CreateNUWAdd(done, llvm::ConstantInt::get(count->getType(), 1));
    done->addIncoming(next, end);
    at_.CreateCondBr(at_.CreateICmpULT(next, count), body, after);
    at_.SetInsertPoint(after);
    for (const auto& [header_phi, value] : llvm::zip(headers, following)) {
        const auto& [phi, made] = header_phi;
        made->addIncoming(value, end);
        llvm::PHINode* const either = at_.CreatePHI(value->getType(), 2);
        either->addIncoming(values[phi], start);
        either->addIncoming(value, end);
        values[phi] = either;
    }
    lanes_.forget_loads(block);
}

// Runs while any lane is active. Lanes that have left keep the values that they had then.
void MaskedCode::emit_masked_loop(llvm::Loop& loop) {
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
    const bool is_apart = llvm::any_of(*header, [&](llvm::Instruction& any) { return lanes_.accesses_apart(any); });
    const auto ordered = is_apart ? std::nullopt : ordered_exit(loop, shapes_);
    std::optional<SkippingBranch> around;
    if (is_worth_skipping(loop, *entering, plan_, shapes_, lanes_.width()) ||
        ((is_left_rarely || ordered) && !is_of_all_lanes(*entering)))
        around.emplace(at_, any_entering ? any_entering : lanes_.any(entering));
    if (ordered)
        emit_whole_iterations(*header, *ordered, entering, initial);
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
    block_masks_[header] = mask;
    set_edges(*header, mask);
    emit_in_order(BlockSet(loop.block_begin(), loop.block_end()), &loop, *header);
    llvm::Value* staying = edges_[{latch, header}];
    llvm::SmallVector<llvm::Value*> following;
    for (auto [phi, made] : headers)
        following.push_back(lanes_.kept(phi->getIncomingValueForBlock(latch), phi));
    std::optional<LeavingLanes> leaving;
    if (is_left_rarely || ordered)
        answer_questions(*mask);
    if (is_left_rarely) {
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

}  // namespace polder::compiler::workgroup
