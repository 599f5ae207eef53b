// Class Planner finds, in order: the loop's frame (header, counter, latch, exit), private variables that need one copy for each
// lane, the blocks that run under masks, and the chunks that these form. Any step may report an obstacle.
#include "lane_plan.h"

#include "lane_types.h"
#include "marks.h"
#include "targets/host/workgroup/frame/private_volatiles.h"
#include "targets/host/workgroup/work_items/uniformity.h"

#include <llvm/Analysis/CFG.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/LoopIterator.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler::workgroup {

namespace {

class Planner {
public:
    Planner(llvm::Loop& loop, llvm::LoopInfo& loops, const llvm::PostDominatorTree& post_dominators, LoopKind kind,
            Masking masking, unsigned lanes)
        : post_dominators_(post_dominators), masking_(masking), plan_(lanes) {
        plan_.kind = kind;
        plan_.loop = &loop;
        plan_.loops = &loops;
    }

    tl::expected<LanePlan, LaneObstacle> run() {
        if (!find_frame())
            return tl::unexpected(LaneObstacle{"the loop over the work-items has an unknown form"});
        if (plan_.kind == LoopKind::work_items && is_too_large())
            return tl::unexpected(LaneObstacle{"the code is too long to be compiled in lanes"});
        llvm::LoopBlocksRPO order(plan_.loop);
        order.perform(plan_.loops);
        if (llvm::containsIrreducibleCFG<llvm::BasicBlock*>(order, *plan_.loops))
            return tl::unexpected(LaneObstacle{"a loop has several entries"});
        if (!is_supported() || !find_masked_blocks() || !find_chunks())
            return tl::unexpected(LaneObstacle{reason_});
        find_joins();
        plan_.privates.interleave([&](const llvm::BasicBlock* block) { return plan_.masked.contains(block); });
        return std::move(plan_);
    }

private:
    bool fail(const char* reason) {
        reason_ = reason;
        return false;
    }

    // What the loop looks like -------------------------------------------------------------------

    bool find_frame() {
        plan_.header = plan_.loop->getHeader();
        plan_.latch = plan_.loop->getLoopLatch();
        plan_.exit = plan_.loop->getExitBlock();
        plan_.preheader = plan_.loop->getLoopPreheader();
        if (!plan_.latch || !plan_.exit || !plan_.preheader || plan_.loop->getExitingBlock() != plan_.latch)
            return false;
        if (!plan_.exit->phis().empty() || !plan_.header->hasNPredecessors(2))
            return false;
        auto phis = plan_.header->phis();
        if (std::distance(phis.begin(), phis.end()) != 1)
            return false;
        plan_.index = &*phis.begin();
        plan_.start = plan_.index->getIncomingValueForBlock(plan_.preheader);
        const auto* start = llvm::dyn_cast<llvm::ConstantInt>(plan_.start);
        if (start ? !start->isZero() : plan_.kind == LoopKind::sub_group || !is_rest_of_vector_loop())
            return false;
        plan_.next = llvm::dyn_cast<llvm::Instruction>(plan_.index->getIncomingValueForBlock(plan_.latch));
        const auto* branch = llvm::dyn_cast<llvm::BranchInst>(plan_.latch->getTerminator());
        if (!plan_.next || !branch || !branch->isConditional())
            return false;
        plan_.compare = llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
        if (!plan_.compare || plan_.compare->getOperand(0) != plan_.next)
            return false;
        plan_.count = plan_.compare->getOperand(1);
        if (!plan_.loop->isLoopInvariant(plan_.count))
            return false;
        if (!plan_.compare->hasOneUse() || !plan_.next->hasNUses(2))
            return false;
        llvm::LoopBlocksRPO order(plan_.loop);
        order.perform(plan_.loops);
        plan_.blocks.assign(order.begin(), order.end());
        return true;
    }

    // Whether the loop follows one that emit_vector_loop made, which may have run some of the work-items.
    [[nodiscard]] bool is_rest_of_vector_loop() const {
        const auto* start = llvm::dyn_cast<llvm::PHINode>(plan_.start);
        return start && start->getParent() == plan_.preheader;
    }

    // For larger loops, compiling would take longer than the code is likely to run.
    static constexpr size_t instructions_max = 30000;
    bool is_too_large() {
        size_t count = 0;
        for (llvm::BasicBlock* block : plan_.blocks)
            count += block->size();
        return count > instructions_max;
    }

    bool is_supported() {
        for (llvm::BasicBlock* block : plan_.blocks) {
            if (block != plan_.latch && !llvm::isa<llvm::BranchInst>(block->getTerminator()))
                return fail("a block does not end with a branch");
            for (llvm::Instruction& instruction : *block)
                for (const llvm::User* user : instruction.users())
                    if (!plan_.loop->contains(llvm::cast<llvm::Instruction>(user)))
                        return fail("a work-item's value is used after its loop");
        }
        return find_private_variables();
    }

    // Private variables have one place in memory, which the work-items use one after the other. Each lane needs its own copy.
    bool find_private_variables() {
        for (llvm::BasicBlock* block : plan_.blocks)
            for (llvm::Instruction& instruction : *block)
                for (const llvm::Use& operand : instruction.operands()) {
                    auto* variable = llvm::dyn_cast<llvm::AllocaInst>(operand.get());
                    if (!variable || plan_.privates.contains(variable) || variable->hasMetadata(shared_variable))
                        continue;
                    const auto is_here = [&](const llvm::User* user) {
                        return plan_.loop->contains(llvm::cast<llvm::Instruction>(user));
                    };
                    const auto is_in_no_loop = [&](const llvm::User* user) {
                        return plan_.loops->getLoopFor(llvm::cast<llvm::Instruction>(user)->getParent()) == nullptr;
                    };
                    // Variables that live from one loop to the next are in arrays (regions/carried_values.h).
                    if (plan_.kind == LoopKind::work_items && !llvm::all_of(variable->users(), is_here))
                        return fail("a private array is used in several loops");
                    // A sub-group that may not be whole has another loop, which uses the same variables.
                    if (llvm::any_of(variable->users(), is_in_no_loop))
                        return fail("a private array is used outside of the loops over work-items");
                    plan_.privates.add(*variable);
                }
        return true;
    }

    llvm::SmallVector<const llvm::Value*> sources() {
        llvm::SmallVector<const llvm::Value*> result{plan_.index};
        llvm::append_range(result, plan_.privates.all());
        return result;
    }

    // What runs under masks ------------------------------------------------------------------------

    bool find_masked_blocks() {
        if (masking_ == Masking::everywhere) {
            for (llvm::BasicBlock* block : plan_.blocks)
                if (block != plan_.header && block != plan_.latch)
                    plan_.masked.insert(block);
            if (plan_.header->getSingleSuccessor() == nullptr)
                plan_.divergent.insert(plan_.header);
            return true;
        }
        const Uniformity uniformity(plan_.blocks, sources(), *plan_.loops);
        for (llvm::BasicBlock* block : uniformity.divergent_branches()) {
            if (block == plan_.latch)
                continue;  // the counter itself
            if (!mask_behind(*block))
                return false;
        }
        // Work-items that return from a loop mask what follows the loop, too. A uniform branch around the loop then leads into masked code.
        do {
            while (llvm::BasicBlock* block = uniform_branch_into_masked_code())
                if (!mask_behind(*block))
                    return false;
        } while (mask_several_entries());
        if (plan_.masked.contains(plan_.header) || plan_.masked.contains(plan_.latch))
            return fail("the first or last block of the work-items' loop is divergent");
        return true;
    }

    // Work-items take both sides of the branch of `block` under masks, until they meet again.
    bool mask_behind(llvm::BasicBlock& block) {
        plan_.divergent.insert(&block);
        const auto* node = post_dominators_.getNode(&block);
        llvm::BasicBlock* join = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
        if (!join || !plan_.loop->contains(join))
            return fail("the sides of a divergent branch do not meet again");
        mask_blocks_between(block, *join);
        for (llvm::Loop* around = plan_.loops->getLoopFor(&block); around != plan_.loop;
             around = around->getParentLoop())
            if (!around->contains(join))
                plan_.masked.insert(around->block_begin(), around->block_end());
        return true;
    }

    llvm::BasicBlock* uniform_branch_into_masked_code() {
        const auto found = llvm::find_if(plan_.blocks, [&](llvm::BasicBlock* block) {
            return !plan_.is_masked(block) && block != plan_.latch && !plan_.divergent.contains(block) &&
                   !block->getSingleSuccessor() &&
                   llvm::any_of(llvm::successors(block), [&](llvm::BasicBlock* next) { return plan_.is_masked(next); });
        });
        return found == plan_.blocks.end() ? nullptr : *found;
    }

    // Masked code that several blocks enter, as where only one side of a uniform branch looks whether a work-item goes on: masks those blocks,
    // so that the code begins with the uniform branch. Returns whether there are any.
    bool mask_several_entries() {
        for (llvm::BasicBlock* block : plan_.blocks) {
            if (plan_.is_masked(block))
                continue;
            BlockSet entries{block};
            for (llvm::BasicBlock* member : masked_blocks_behind(*block))
                for (llvm::BasicBlock* before : llvm::predecessors(member))
                    if (!plan_.is_masked(before))
                        entries.insert(before);
            if (entries.size() == 1)
                continue;
            entries.erase(plan_.header);
            plan_.masked.insert(entries.begin(), entries.end());
            return true;
        }
        return false;
    }

    BlockSet masked_blocks_behind(llvm::BasicBlock& block) const {
        BlockSet result;
        llvm::SmallVector<llvm::BasicBlock*> todo{&block};
        while (!todo.empty())
            for (llvm::BasicBlock* next : llvm::successors(todo.pop_back_val()))
                if (plan_.is_masked(next) && result.insert(next).second)
                    todo.push_back(next);
        return result;
    }

    // Blocks that are masked because of an inner branch are visited too, because the blocks after its join may not be masked yet.
    void mask_blocks_between(llvm::BasicBlock& branch, const llvm::BasicBlock& join) {
        BlockSet seen;
        llvm::SmallVector<llvm::BasicBlock*> todo(llvm::successors(&branch));
        while (!todo.empty()) {
            llvm::BasicBlock* next = todo.pop_back_val();
            if (next == &join || !seen.insert(next).second)
                continue;
            plan_.masked.insert(next);
            todo.append(llvm::succ_begin(next), llvm::succ_end(next));
        }
    }

    bool find_chunks() {
        auto chunks = chunks_of(plan_.blocks, plan_.masked, plan_.divergent);
        if (!chunks) {
            reason_ = std::move(chunks.error().reason);
            return false;
        }
        plan_.chunks = std::move(*chunks);
        return true;
    }

    void find_joins() {
        for (llvm::BasicBlock* block : plan_.blocks)
            if (const auto* node = post_dominators_.getNode(block); node && node->getIDom())
                plan_.joins[block] = node->getIDom()->getBlock();
    }

    const llvm::PostDominatorTree& post_dominators_;
    const Masking masking_;
    LanePlan plan_;
    std::string reason_;
};

// Adds the masked blocks behind `leader` to the chunk, and where they end. Returns what is wrong, or null.
const char* follow(llvm::BasicBlock& leader, const BlockSet& masked, MaskedChunk& chunk) {
    llvm::SmallVector<llvm::BasicBlock*> todo{&leader};
    while (!todo.empty())
        for (llvm::BasicBlock* next : llvm::successors(todo.pop_back_val())) {
            if (masked.contains(next)) {
                if (chunk.blocks.insert(next).second)
                    todo.push_back(next);
            } else if (chunk.join && chunk.join != next) {
                return "masked code is left for several places";
            } else {
                chunk.join = next;
            }
        }
    return chunk.join ? nullptr : "masked code does not end";
}

bool is_control_uniform(const LanePlan& plan, const LaneShapes& shapes) {
    for (llvm::BasicBlock* block : plan.blocks) {
        if (plan.is_masked(block) || block == plan.latch || plan.divergent.contains(block))
            continue;
        const auto* branch = llvm::cast<llvm::BranchInst>(block->getTerminator());
        if (branch->isConditional() && !shapes.of(branch->getCondition()).is_uniform())
            return false;
    }
    return true;
}

// Whether lanes may leave a loop around the instruction at different times.
bool is_in_masked_loop(const LanePlan& plan, const llvm::Instruction& instruction) {
    for (const llvm::Loop* around = plan.loops->getLoopFor(instruction.getParent()); around != plan.loop;
         around = around->getParentLoop())
        if (plan.masked.contains(around->getHeader()))
            return true;
    return false;
}

// A work-item may wait in a loop for another work-item that has left the loop already. Lanes that run in
// step would wait for ever. A store, or an atomic operation whose result is not used, cannot decide how long a loop runs.
bool is_wait(const LanePlan& plan, const llvm::Instruction& instruction) {
    const bool is_ordered = instruction.isAtomic() || instruction.isVolatile() || is_exchange_call(instruction);
    return is_ordered && !instruction.use_empty() && !accesses_own_variable(instruction) &&
           is_in_masked_loop(plan, instruction);
}

// Whether an instruction with an operand or result that is an explicit vector has a form for lanes.
bool has_form_for_vectors(const LanePlan& plan, const LaneShapes& shapes, const llvm::Instruction& instruction) {
    if (const auto* cast = llvm::dyn_cast<llvm::CastInst>(&instruction))
        return is_cast_lane_by_lane(*cast);
    if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction))
        return llvm::isTriviallyVectorizable(call->getIntrinsicID());
    if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
        return store->isSimple() && !(shapes.of(store->getPointerOperand()).is_uniform() &&
                                      plan.masked.contains(const_cast<llvm::BasicBlock*>(store->getParent())));
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
        return load->isSimple();
    return !instruction.isIntDivRem() && !instruction.mayReadOrWriteMemory() &&
           !llvm::isa<llvm::GetElementPtrInst>(instruction);
}

// Why `instruction`, which varies between lanes, has no form for them; null when it has one.
const char* obstacle_to(const LanePlan& plan, const LaneShapes& shapes, llvm::Instruction& instruction) {
    if (!instruction.getType()->isVoidTy() && !has_lane_form(*instruction.getType()))
        return "a value is neither a number nor a pointer: ";
    bool has_vector = instruction.getType()->isVectorTy();
    for (const llvm::Use& operand : instruction.operands()) {
        if (llvm::isa<llvm::Function>(operand.get()) || operand->getType()->isMetadataTy())
            continue;
        if (!has_lane_form(*operand->getType()))
            return "an operand is neither a number nor a pointer: ";
        has_vector |= operand->getType()->isVectorTy();
    }
    if (has_vector && (plan.kind == LoopKind::sub_group || !has_form_for_vectors(plan, shapes, instruction)))
        return "vectors are used as a whole: ";
    if (plan.kind == LoopKind::work_items) {
        // One fence orders the accesses of all lanes: they are made before it, or after it.
        const bool is_fence = llvm::isa<llvm::FenceInst>(instruction);
        if (is_wait(plan, instruction) || (is_fence && is_in_masked_loop(plan, instruction)))
            return "a loop may wait for another work-item: ";
    }
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call && (!call->getCalledFunction() || call->isInlineAsm()))
        return "a call of an unknown function: ";
    return nullptr;
}

std::string text_of(const llvm::Instruction& instruction) {
    std::string text;
    llvm::raw_string_ostream(text) << instruction;
    return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

}  // namespace

tl::expected<LanePlan, LaneObstacle> plan_lanes(llvm::Loop& loop, llvm::LoopInfo& loops,
                                                const llvm::PostDominatorTree& post_dominators, unsigned lanes,
                                                LoopKind kind, Masking masking) {
    return Planner(loop, loops, post_dominators, kind, masking, lanes).run();
}

tl::expected<std::map<llvm::BasicBlock*, MaskedChunk>, LaneObstacle>
chunks_of(llvm::ArrayRef<llvm::BasicBlock*> blocks, const BlockSet& masked,
          const llvm::SmallPtrSetImpl<const llvm::BasicBlock*>& divergent) {
    std::map<llvm::BasicBlock*, MaskedChunk> chunks;
    BlockSet taken;
    for (llvm::BasicBlock* block : blocks) {
        if (masked.contains(block))
            continue;
        const bool leads =
            llvm::any_of(llvm::successors(block), [&](llvm::BasicBlock* next) { return masked.contains(next); });
        if (!leads && !divergent.contains(block))
            continue;
        MaskedChunk chunk;
        if (const char* reason = follow(*block, masked, chunk))
            return tl::unexpected(LaneObstacle{reason});
        for (llvm::BasicBlock* member : chunk.blocks) {
            const bool is_entered_here = llvm::all_of(llvm::predecessors(member), [&](llvm::BasicBlock* before) {
                return before == block || chunk.blocks.contains(before);
            });
            if (!taken.insert(member).second || !is_entered_here)
                return tl::unexpected(LaneObstacle{"masked code is entered from several places"});
        }
        chunks[block] = std::move(chunk);
    }
    return chunks;
}

std::optional<LaneObstacle> obstacle_to_lanes(const LanePlan& plan, const LaneShapes& shapes) {
    if (!is_control_uniform(plan, shapes))
        return LaneObstacle{"a branch taken for uniform depends on a value that varies"};
    for (llvm::BasicBlock* block : plan.blocks)
        for (llvm::Instruction& instruction : *block) {
            if (instruction.isTerminator() || shapes.of(&instruction).is_strided())
                continue;
            if (const char* reason = obstacle_to(plan, shapes, instruction))
                return LaneObstacle{reason + text_of(instruction)};
        }
    return std::nullopt;
}

}  // namespace polder::compiler::workgroup
