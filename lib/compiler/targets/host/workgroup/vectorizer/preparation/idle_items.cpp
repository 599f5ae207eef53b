// The guard is a chain of blocks that starts at the loop's header. Each block writes nothing, and loads only from one address for all lanes or
// from consecutive addresses. It ends with a branch, and one side of the branch is the end of the loop: a work-item that goes there is idle.
// A work-item that reaches the block after the chain is busy. find_guard() finds the chain; emit() writes the loops that idle_items.h shows.
#include "idle_items.h"

#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"
#include "targets/host/workgroup/vectorizer/estimates/lane_cost.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

namespace polder::compiler::workgroup {

namespace {

constexpr size_t guard_instructions_max = 30;

class IdleItems {
public:
    IdleItems(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses)
        : plan_(plan), shapes_(shapes), accesses_(accesses), function_(*plan.header->getParent()) {}

    bool skip(unsigned items_at_once) {
        const auto* start = llvm::dyn_cast<llvm::ConstantInt>(plan_.start);
        if (start == nullptr || !start->isZero() || !is_without_effect(*plan_.latch) ||
            !llvm::hasSingleElement(plan_.header->phis()) || !find_guard())
            return false;
        emit(items_at_once);
        return true;
    }

private:
    // The guard ---------------------------------------------------------------------------------

    static bool is_without_effect(const llvm::BasicBlock& block) {
        return llvm::none_of(block, [](const llvm::Instruction& one) {
            return !llvm::isa<llvm::AssumeInst>(one) && (one.mayHaveSideEffects() || one.mayReadFromMemory());
        });
    }

    // Whether a work-item that reaches `block` does nothing more.
    [[nodiscard]] bool is_end(const llvm::BasicBlock* block) const {
        while (block != plan_.latch && block->size() == 1 && block->getSingleSuccessor() != nullptr &&
               plan_.loop->contains(block))
            block = block->getSingleSuccessor();
        return block == plan_.latch;
    }

    bool find_guard() {
        bool depends_on_load = false;
        size_t instructions = 0, blocks = 0;
        llvm::BasicBlock* next = plan_.header;
        while (const auto* branch = asks(*next)) {
            instructions += next->size();
            const bool is_first_end = is_end(branch->getSuccessor(0));
            const bool goes_on =
                branch->isConditional() ? is_first_end != is_end(branch->getSuccessor(1)) : !is_first_end;
            if (!goes_on || instructions > guard_instructions_max)
                break;
            guard_.push_back(next);
            next = branch->getSuccessor(is_first_end ? 1 : 0);
            if (branch->isConditional() && !is_entry_of_loop(*branch, *next)) {
                depends_on_load |= depends_on_lanes_load(branch->getCondition());
                blocks = guard_.size();
                busy_ = next;
            }
            if (next->getSinglePredecessor() != guard_.back())
                break;
        }
        guard_.truncate(blocks);
        return depends_on_load;
    }

    // The branch of a block whose instructions are quick in lanes; null for any other block.
    const llvm::BranchInst* asks(llvm::BasicBlock& block) {
        for (llvm::Instruction& one : block) {
            if (llvm::isa<llvm::PHINode, llvm::AssumeInst>(one) || one.isTerminator())
                continue;
            auto* const load = llvm::dyn_cast<llvm::LoadInst>(&one);
            if (load != nullptr ? !is_quick(*load) : !is_vector_instruction(one))
                return nullptr;
        }
        const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
        return &block != plan_.latch ? branch : nullptr;
    }

    bool is_quick(llvm::LoadInst& load) {
        if (!load.isSimple() || !is_scalar(*load.getType()) ||
            llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(load.getPointerOperand())))
            return false;
        if (shapes_.of(load.getPointerOperand()).is_uniform())
            return true;
        const auto access = accesses_.of(load);
        return access && access->is_consecutive();
    }

    // Whether the branch tests if an inner loop has a first iteration, with a value that the iterations also use. Most of these loops have
    // one, so such a branch is no useful guard.
    bool is_entry_of_loop(const llvm::BranchInst& branch, const llvm::BasicBlock& next) const {
        const llvm::BasicBlock* const head = next.getSingleSuccessor();
        const llvm::Loop* const inner = head ? plan_.loops->getLoopFor(head) : nullptr;
        const auto* condition = llvm::dyn_cast<llvm::ICmpInst>(branch.getCondition());
        const auto is_needed = [&](const llvm::Use& operand) {
            return llvm::isa<llvm::Instruction>(operand.get()) &&
                   llvm::any_of(operand->users(), [&](const llvm::User* user) {
                       return !llvm::is_contained(guard_, llvm::cast<llvm::Instruction>(user)->getParent());
                   });
        };
        return inner != nullptr && inner->getHeader() == head && !inner->contains(&next) && condition != nullptr &&
               llvm::any_of(condition->operands(), is_needed);
    }

    // Whether `value` depends on a load that differs between lanes. A guard without such a load has the same result for nearly all work-items,
    // for example a comparison of the id with the number of elements, so evaluating it ahead gains nothing.
    bool depends_on_lanes_load(llvm::Value* value) {
        auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
        if (instruction == nullptr || !llvm::is_contained(guard_, instruction->getParent()) ||
            !seen_.insert(instruction).second)
            return false;
        if (llvm::isa<llvm::LoadInst>(instruction))
            return !shapes_.of(instruction).is_uniform();
        return llvm::any_of(instruction->operands(), [&](llvm::Value* one) { return depends_on_lanes_load(one); });
    }

    // The loops ---------------------------------------------------------------------------------

    llvm::BasicBlock* make_block(const char* name) {
        return llvm::BasicBlock::Create(function_.getContext(), name, &function_, plan_.header);
    }

    void emit(unsigned items_at_once) {
        llvm::BasicBlock* const some = make_block("items.some");
        llvm::BasicBlock* const ask = make_block("items.ask");
        llvm::BasicBlock* const busy = make_block("items.busy");
        llvm::BasicBlock* const next = make_block("items.skip");
        llvm::IRBuilder<> at(&*function_.getEntryBlock().getFirstInsertionPt());
        auto* const flags_type = llvm::FixedVectorType::get(at.getInt8Ty(), items_at_once);
        llvm::AllocaInst* const flags = at.CreateAlloca(flags_type, nullptr, "busy");
        flags->setMetadata(shared_variable, llvm::MDNode::get(function_.getContext(), {}));
        llvm::IntegerType* const bits_type = at.getIntNTy(items_at_once);

        plan_.preheader->getTerminator()->replaceSuccessorWith(plan_.header, some);
        at.SetInsertPoint(some);
        llvm::Type* const type = plan_.index->getType();
        llvm::PHINode* const first = at.CreatePHI(type, 2, "items.first");
        llvm::Value* const size = llvm::ConstantInt::get(type, items_at_once);
        llvm::Value* const end = at.CreateAdd(first, size, "", /*HasNUW=*/true, /*HasNSW=*/true);
        llvm::Value* const is_whole = at.CreateICmpULE(end, plan_.count);
        llvm::Value* const left = at.CreateZExtOrTrunc(at.CreateSub(plan_.count, first), bits_type);
        llvm::Value* const all_left = at.CreateNot(at.CreateShl(llvm::Constant::getAllOnesValue(bits_type), left));
        at.CreateCondBr(is_whole, ask, busy);

        llvm::BasicBlock* const asked = emit_question(*ask, *first, *size, *flags);
        at.SetInsertPoint(asked);
        llvm::Value* const found = at.CreateAlignedLoad(flags_type, flags, flags->getAlign());
        llvm::Value* const bits = at.CreateBitCast(at.CreateIsNotNull(found), bits_type);
        at.CreateCondBr(at.CreateIsNotNull(bits), busy, next);

        at.SetInsertPoint(busy);
        llvm::PHINode* const entered = at.CreatePHI(bits_type, 2);
        entered->addIncoming(all_left, some);
        entered->addIncoming(bits, asked);
        at.CreateBr(plan_.header);
        run_busy_items(*entered, *first);
        plan_.latch->getTerminator()->replaceSuccessorWith(plan_.exit, next);

        at.SetInsertPoint(next);
        llvm::BranchInst* const back = at.CreateCondBr(at.CreateICmpULT(end, plan_.count), some, plan_.exit);
        first->addIncoming(llvm::ConstantInt::get(type, 0), plan_.preheader);
        first->addIncoming(end, next);
        set_loop_properties(*back, {"llvm.loop.unroll.disable", items_tag});
    }

    // Makes the loop run the work-items beyond `first` whose bits are set in `entered`, of which at least one is.
    void run_busy_items(llvm::PHINode& entered, llvm::Value& first) {
        llvm::IRBuilder<> at(plan_.index);
        llvm::Type* const type = entered.getType();
        llvm::PHINode* const bits = at.CreatePHI(type, 2, "items.busy");
        at.SetInsertPoint(plan_.header, plan_.header->getFirstInsertionPt());
        llvm::Value* const lowest = at.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, at.getTrue());
        llvm::Value* const item = at.CreateAdd(&first, at.CreateZExtOrTrunc(lowest, first.getType()), "",
                                               /*HasNUW=*/true, /*HasNSW=*/true);
        plan_.index->replaceAllUsesWith(item);
        plan_.index->eraseFromParent();
        auto* const branch = llvm::cast<llvm::BranchInst>(plan_.latch->getTerminator());
        at.SetInsertPoint(branch);
        llvm::Value* const others = at.CreateAnd(bits, at.CreateSub(bits, llvm::ConstantInt::get(type, 1)));
        bits->addIncoming(&entered, entered.getParent());
        bits->addIncoming(others, plan_.latch);
        branch->setCondition(branch->getSuccessor(0) == plan_.header ? at.CreateIsNotNull(others)
                                                                     : at.CreateIsNull(others));
        llvm::RecursivelyDeleteTriviallyDeadInstructions(plan_.compare);
    }

    // The loop that evaluates the guards. Returns the block after it, which has no terminator yet.
    llvm::BasicBlock* emit_question(llvm::BasicBlock& before, llvm::Value& first, llvm::Value& size,
                                    llvm::Value& flags) {
        llvm::BasicBlock* const head = make_block("ask.items");
        llvm::BasicBlock* const yes = make_block("ask.busy");
        llvm::BasicBlock* const latch = make_block("ask.next");
        llvm::BasicBlock* const behind = make_block("ask.done");
        llvm::IRBuilder<> at(&before);
        at.CreateBr(head);
        at.SetInsertPoint(head);
        llvm::Type* const type = first.getType();
        llvm::PHINode* const counter = at.CreatePHI(type, 2);
        llvm::Value* const item = at.CreateAdd(&first, counter, "", /*HasNUW=*/true, /*HasNSW=*/true);
        llvm::BranchInst* const into = at.CreateBr(behind);
        at.SetInsertPoint(yes);
        at.CreateBr(latch);
        into->setSuccessor(0, copy_guard(*item, *yes, *latch));
        at.SetInsertPoint(latch);
        llvm::PHINode* const is_busy = at.CreatePHI(at.getInt8Ty(), 2);
        for (llvm::BasicBlock* from : llvm::predecessors(latch))
            is_busy->addIncoming(at.getInt8(from == yes ? 1 : 0), from);
        at.CreateStore(is_busy, at.CreateGEP(at.getInt8Ty(), &flags, counter));
        llvm::Value* const next =
            at.CreateAdd(counter, llvm::ConstantInt::get(type, 1), "", /*HasNUW=*/true, /*HasNSW=*/true);
        llvm::BranchInst* const back = at.CreateCondBr(at.CreateICmpEQ(next, &size), behind, head);
        counter->addIncoming(llvm::ConstantInt::get(type, 0), &before);
        counter->addIncoming(next, latch);
        set_loop_properties(*back, {idle_items_tag}, plan_.loop->getLoopID());
        return behind;
    }

    // Copies the guard for the work-item `item`; a busy one goes to `yes`, an idle one to `no`. Returns the first block of the copy.
    llvm::BasicBlock* copy_guard(llvm::Value& item, llvm::BasicBlock& yes, llvm::BasicBlock& no) {
        llvm::ValueToValueMapTy copies;
        llvm::SmallVector<llvm::BasicBlock*> blocks;
        for (const llvm::BasicBlock* block : guard_) {
            llvm::BasicBlock* const copy = llvm::CloneBasicBlock(block, copies, ".ask", &function_);
            copy->moveBefore(plan_.header);
            copies[block] = copy;
            blocks.push_back(copy);
        }
        llvm::cast<llvm::Instruction>(static_cast<llvm::Value*>(copies[plan_.index]))->eraseFromParent();
        copies[plan_.index] = &item;
        llvm::remapInstructionsInBlocks(blocks, copies);
        for (const auto [copy, block] : llvm::zip(blocks, guard_)) {
            auto* const branch = llvm::cast<llvm::BranchInst>(copy->getTerminator());
            for (unsigned side = 0; side < branch->getNumSuccessors(); ++side) {
                llvm::BasicBlock* const to = block->getTerminator()->getSuccessor(side);
                const bool is_next = block != guard_.back() && !is_end(to);
                branch->setSuccessor(side, is_next                                 ? branch->getSuccessor(side)
                                           : to == busy_ && block == guard_.back() ? &yes
                                                                                   : &no);
            }
        }
        return blocks.front();
    }

    const LanePlan& plan_;
    const LaneShapes& shapes_;
    LaneAccesses& accesses_;
    llvm::Function& function_;
    llvm::SmallVector<llvm::BasicBlock*, 4> guard_;
    llvm::SmallPtrSet<const llvm::Instruction*, 16> seen_;
    llvm::BasicBlock* busy_ = nullptr;  // the block that busy work-items reach after the guard
};

}  // namespace

bool skip_idle_items(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, unsigned items_at_once) {
    return IdleItems(plan, shapes, accesses).skip(items_at_once);
}

}  // namespace polder::compiler::workgroup
