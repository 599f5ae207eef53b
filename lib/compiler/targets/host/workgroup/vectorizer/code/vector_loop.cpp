// Uniform blocks are emitted as they are, with vector instructions, and behind them the chunks of masked blocks (masked_code.h).
#include "vector_loop.h"

#include "masked_code.h"
#include "targets/host/workgroup/frame/usual_launches.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"
#include "targets/host/workgroup/vectorizer/preparation/index_checks.h"

#include <llvm/Analysis/LoopInfo.h>

namespace polder::compiler::workgroup {

namespace {

class VectorLoop {
public:
    VectorLoop(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, unsigned width, Masks masks,
               const SubGroupLanes* sub_group)
        : plan_(plan), shapes_(shapes), function_(*plan.header->getParent()),
          lanes_(plan, shapes, accesses, width, sub_group), masked_(plan, shapes, lanes_, masks),
          at_(lanes_.builder()) {}

    void emit(llvm::ArrayRef<RowDistance> rows) {
        auto* check = llvm::BasicBlock::Create(function_.getContext(), "vector.check", &function_);
        auto* finish = llvm::BasicBlock::Create(function_.getContext(), "vector.done", &function_);
        auto* scalar_start = llvm::BasicBlock::Create(function_.getContext(), "items.rest", &function_);
        make_blocks(*check);
        at_.SetInsertPoint(check);
        // Where vectors are known to have all work-items, of which there is at least one, the rest has none.
        const bool has_rest = !is_multiple(*plan_.count, lanes_.width());
        llvm::Value* const covered =
            has_rest ? at_.CreateAnd(plan_.count, at_.getInt64(~uint64_t{lanes_.width() - 1})) : plan_.count;
        llvm::Value* possible = bases_are_small();
        if (has_rest)
            possible = at_.CreateAnd(at_.CreateICmpNE(covered, plan_.start), possible);
        if (shapes_.depends_on_lanes())
            possible = at_.CreateAnd(possible, bases_are_aligned());
        if (!rows.empty())
            possible = at_.CreateAnd(possible, rows_are_not_alike(at_, rows));
        llvm::Instruction* const enter = at_.CreateCondBr(possible, begin_[plan_.header], scalar_start);
        lanes_.set_row({.before = enter, .begin = plan_.start, .end = covered});

        emit_blocks(*check, covered, *finish);
        move_rare_values(lanes_.rare_blocks(), *begin_[plan_.header], *finish);
        at_.SetInsertPoint(finish);
        at_.CreateCondBr(has_rest ? at_.CreateICmpEQ(covered, plan_.count) : at_.getTrue(), plan_.exit, scalar_start);
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
        llvm::Value* holds = at_.CreateAnd(indices_do_not_wrap(at_, shapes_.assumed_small(), *plan_.count),
                                           bounds_are_small(at_, shapes_.assumed_bounds()));
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
        masked_.emit_body(block, nullptr);
        if (&block == plan_.latch && !covered) {
            at_.CreateBr(&finish);
        } else if (&block == plan_.latch) {
            auto* index = llvm::cast<llvm::PHINode>(lanes_.made(plan_.index));
            llvm::Value* next = at_.CreateAdd(index, at_.getInt64(lanes_.width()), "", true, true);
            index->addIncoming(next, at_.GetInsertBlock());
            llvm::Instruction* back = at_.CreateCondBr(at_.CreateICmpEQ(next, covered), &finish, begin_[plan_.header]);
            set_loop_properties(*back, {"llvm.loop.unroll.disable", items_tag});
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
        masked_.emit_chunk(block, chunk, nullptr, plan_.loops->getLoopFor(&block));
        for (llvm::PHINode& phi : chunk.join->phis())
            blended_[{&block, &phi}] = masked_.arriving_from(block, chunk, phi);
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

    const LanePlan& plan_;
    const LaneShapes& shapes_;
    llvm::Function& function_;
    LaneCode lanes_;
    MaskedCode masked_;
    llvm::IRBuilder<>& at_;

    std::map<std::pair<llvm::BasicBlock*, llvm::PHINode*>, llvm::Value*> blended_;
    llvm::DenseMap<llvm::BasicBlock*, llvm::BasicBlock*> begin_, end_;
    llvm::SmallVector<llvm::PHINode*> phis_;
};

}  // namespace

std::set<std::string> emit_vector_loop(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                                       unsigned width, Masks masks, llvm::ArrayRef<RowDistance> rows) {
    VectorLoop loop(plan, shapes, accesses, width, masks, nullptr);
    loop.emit(rows);
    return loop.serial_calls();
}

void emit_sub_group(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                    const SubGroupLanes& sub_group, llvm::BasicBlock* otherwise) {
    VectorLoop(plan, shapes, accesses, sub_group.size, Masks::cheap, &sub_group).emit_sub_group(otherwise);
}

}  // namespace polder::compiler::workgroup
