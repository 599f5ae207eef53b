// Each term of a guard, and each limit of a clipped loop, that compares a bound with a sum of the loop's counter holds between two numbers (item_ranges.h),
// which are computed before the loop.
#include "passing_items.h"

#include "clipped_loops.h"
#include "following_loops.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler::workgroup {

namespace {

constexpr size_t passed_instructions_max = 160, clipped_instructions_max = 400;  // the body is emitted once more
// Fewer vectors in a row save less than it costs to change between the loops, unless they are the whole row.
constexpr unsigned vectors_min = 3;

// A loop with a constant number of work-items may be unrolled if they are fewer.
constexpr uint64_t unrolled_items_max = 64;

class PassingItems {
public:
    // `shapes`: null where the loop is not to be divided.
    PassingItems(const LanePlan& plan, const LaneShapes* shapes)
        : plan_(plan), shapes_(shapes), guarded_(*plan.loop), ranges_(guarded_, plan.count),
          function_(*plan.header->getParent()), context_(function_.getContext()) {}

    bool separate(unsigned width, Masks masks) {
        if (plan_.kind == LoopKind::sub_group || !plan_.loop->isInnermost() || !guarded_.has_guards() ||
            llvm::findOptionMDForLoop(plan_.loop, passing_items_tag) != nullptr || !are_masks_dear(masks) ||
            !are_known())
            return false;
        emit(width, {passing_items_tag}, {passing_items_tag, unguarded_tag});
        return true;
    }

    bool separate_clipped(unsigned width) {
        if (plan_.kind == LoopKind::sub_group || plan_.loop->isInnermost() || !guarded_.is_counted() ||
            llvm::findOptionMDForLoop(plan_.loop, passing_items_tag) != nullptr || size() > clipped_instructions_max)
            return false;
        limits_ = clipped_limits(*plan_.loop, guarded_, ranges_);
        if (limits_.empty()) {
            following_ = following_loops(*plan_.loop, guarded_, plan_.count);
            limits_ = following_.limits;
        }
        if (limits_.empty())
            return false;
        emit(width, {passing_items_tag, clipped_tag}, {passing_items_tag});
        return true;
    }

    // The number of work-items up to the last vector of which one may pass the guards; null where that is not known before the loop.
    llvm::Value* needed_items(unsigned width) const {
        if (plan_.kind == LoopKind::sub_group || !guarded_.has_guards())
            return nullptr;
        FoldingBuilder before(plan_.preheader, plan_.preheader->getTerminator()->getIterator(),
                              llvm::InstSimplifyFolder(function_.getDataLayout()));
        llvm::Value* end = nullptr;
        for (const llvm::BranchInst* guard : guarded_.guards())
            for (const GuardedLoop::Term& term : guarded_.terms_of(*guard)) {
                const auto comparison =
                    guarded_.is_invariant(*term.condition) ? std::nullopt : ranges_.comparison_of(term);
                if (!comparison || !is_below(comparison->predicate))
                    continue;
                llvm::Value* const its_end = ranges_.end_of(before, *comparison);
                end = end == nullptr ? its_end : before.CreateBinaryIntrinsic(llvm::Intrinsic::umin, end, its_end);
            }
        if (end == nullptr)
            return nullptr;
        const auto number = [&](int64_t value) { return llvm::ConstantInt::getSigned(end->getType(), value); };
        end = before.CreateAnd(before.CreateAdd(end, number(width - 1)), number(-static_cast<int64_t>(width)));
        end = before.CreateBinaryIntrinsic(llvm::Intrinsic::umax, end, number(width));  // the loop runs at least once
        return before.CreateBinaryIntrinsic(llvm::Intrinsic::umin, end, plan_.count, nullptr, "items.needed");
    }

private:
    // Whether to divide --------------------------------------------------------------------------------

    // A mask of lanes is repeated for each element where lanes hold a kernel's own vectors (lane_types), even if the processor has registers for masks.
    [[nodiscard]] bool are_masks_dear(Masks masks) const {
        bool accesses_memory = false;
        for (llvm::BasicBlock* block : plan_.blocks)
            for (llvm::Instruction& instruction : *block) {
                const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
                accesses_memory |= address != nullptr && plan_.is_masked(block) && !shapes_->of(address).is_uniform() &&
                                   (masks == Masks::dear || llvm::getLoadStoreType(&instruction)->isVectorTy());
            }
        return accesses_memory && size() <= passed_instructions_max;
    }

    [[nodiscard]] size_t size() const {
        size_t size = 0;
        for (const llvm::BasicBlock* block : plan_.blocks)
            size += block->size();
        return size;
    }

    // Whether there are guards whose terms all hold between two numbers, or are the same for all work-items.
    [[nodiscard]] bool are_known() const {
        bool is_some_known = false;
        for (const llvm::BranchInst* guard : guarded_.guards())
            for (const GuardedLoop::Term& term : guarded_.terms_of(*guard)) {
                if (guarded_.is_invariant(*term.condition))
                    continue;
                if (!ranges_.comparison_of(term))
                    return false;
                is_some_known = true;
            }
        return is_some_known;
    }

    // Those that the copy does not have.
    [[nodiscard]] llvm::ArrayRef<llvm::BranchInst*> passed_guards() const {
        return are_known() ? guarded_.guards() : llvm::ArrayRef<llvm::BranchInst*>();
    }

    // Where all guards hold and no limit is clipped, in whole vectors.
    ItemRange whole_vectors(FoldingBuilder& before, unsigned width) const {
        ItemRange all{llvm::ConstantInt::get(plan_.count->getType(), 0), plan_.count};
        const auto require = [&](const ItemComparison& comparison) {
            const ItemRange range = ranges_.range_of(before, comparison);
            all.begin = before.CreateBinaryIntrinsic(llvm::Intrinsic::umax, all.begin, range.begin);
            all.end = before.CreateBinaryIntrinsic(llvm::Intrinsic::umin, all.end, range.end);
        };
        for (const ClippedLimit& limit : limits_)
            require(limit.holds);
        for (const ItemComparison& comparison : following_.required)
            require(comparison);
        for (const llvm::BranchInst* guard : passed_guards())
            for (const GuardedLoop::Term& term : guarded_.terms_of(*guard))
                if (const auto comparison =
                        guarded_.is_invariant(*term.condition) ? std::nullopt : ranges_.comparison_of(term))
                    require(*comparison);
        const auto whole = [&](llvm::Value* number) {
            return before.CreateAnd(number,
                                    llvm::ConstantInt::getSigned(number->getType(), -static_cast<int64_t>(width)));
        };
        all.begin = whole(before.CreateAdd(all.begin, llvm::ConstantInt::get(all.begin->getType(), width - 1)));
        all.end = whole(all.end);
        return all;
    }

    llvm::Value* holds_for(FoldingBuilder& before, const FollowingLoops::Entry& entry, llvm::Value* item) const {
        llvm::Value* const begin = frozen(before, *guarded_.at_counter(before, *entry.begin, item));
        llvm::Value* const end = frozen(before, *guarded_.at_counter(before, *entry.end, item));
        return before.CreateICmp(entry.predicate, begin, end);
    }

    // The loops ---------------------------------------------------------------------------------------

    llvm::BasicBlock* make_block(const char* name) const {
        return llvm::BasicBlock::Create(context_, name, &function_, plan_.header);
    }

    void emit(unsigned width, llvm::ArrayRef<llvm::StringRef> tags, llvm::ArrayRef<llvm::StringRef> passing_tags) {
        FoldingBuilder before(plan_.preheader, plan_.preheader->getTerminator()->getIterator(),
                              llvm::InstSimplifyFolder(function_.getDataLayout()));
        const ItemRange passing = whole_vectors(before, width);
        llvm::Type* const type = plan_.count->getType();
        llvm::Value* const length = before.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, passing.end, passing.begin);
        llvm::Value* has_some =
            before.CreateOr(before.CreateICmpUGE(length, llvm::ConstantInt::get(type, uint64_t{vectors_min} * width)),
                            before.CreateICmpEQ(length, plan_.count));
        for (const FollowingLoops::Entry& entry : following_.entries)
            has_some = before.CreateAnd(has_some, holds_for(before, entry, passing.begin));
        llvm::Value* const zero = llvm::ConstantInt::get(type, 0);
        llvm::Value* const first_end = before.CreateSelect(has_some, passing.begin, plan_.count);

        llvm::BasicBlock* const part = make_block("items.part");
        llvm::BasicBlock* const guarded = make_block("items.guarded");
        llvm::BasicBlock* const guarded_done = make_block("items.guarded.done");
        llvm::BasicBlock* const next = make_block("items.part.next");
        llvm::BasicBlock* const passing_all = make_block("items.passing");
        llvm::BasicBlock* const passing_done = make_block("items.passing.done");
        plan_.preheader->getTerminator()->replaceSuccessorWith(plan_.header, part);

        llvm::IRBuilder<> at(part);
        llvm::PHINode* const begin = at.CreatePHI(type, 2, "part.begin");
        llvm::PHINode* const end = at.CreatePHI(type, 2, "part.end");
        begin->addIncoming(zero, plan_.preheader);
        begin->addIncoming(passing.end, passing_done);
        end->addIncoming(first_end, plan_.preheader);
        end->addIncoming(plan_.count, passing_done);
        at.CreateCondBr(at.CreateICmpULT(begin, end), guarded, next);
        at.SetInsertPoint(guarded);
        llvm::PHINode* const start = at.CreatePHI(type, 1);  // the vectorizer knows the start of a rest as a phi
        start->addIncoming(begin, part);
        at.CreateBr(plan_.header);
        at.SetInsertPoint(guarded_done);
        at.CreateBr(next);
        at.SetInsertPoint(next);
        at.CreateCondBr(at.CreateICmpEQ(end, plan_.count), plan_.exit, passing_all);
        at.SetInsertPoint(passing_all);
        llvm::Value* const passing_count = at.CreateSub(passing.end, passing.begin);
        at.CreateBr(copy_without_guards(*passing_all, *passing_done, *passing.begin, *passing_count, passing_tags));
        at.SetInsertPoint(passing_done);
        set_loop_properties(*at.CreateBr(part),
                            {"llvm.loop.unroll.disable", "llvm.loop.unswitch.partial.disable", items_tag});

        const auto entry = static_cast<unsigned>(plan_.index->getBasicBlockIndex(plan_.preheader));
        plan_.index->setIncomingBlock(entry, guarded);
        plan_.index->setIncomingValue(entry, start);
        plan_.compare->setOperand(1, end);
        plan_.latch->getTerminator()->replaceSuccessorWith(plan_.exit, guarded_done);
        set_loop_properties(*plan_.latch->getTerminator(), tags, plan_.loop->getLoopID());
    }

    // The body for `count` work-items from `first`, which all pass the guards. Returns its first block.
    llvm::BasicBlock* copy_without_guards(llvm::BasicBlock& from, llvm::BasicBlock& done, llvm::Value& first,
                                          llvm::Value& count, llvm::ArrayRef<llvm::StringRef> tags) {
        llvm::ValueToValueMapTy copies;
        for (const llvm::AllocaInst* variable : plan_.privates.all()) {  // the vectorizer expects each in one loop
            llvm::Instruction* const own = variable->clone();
            own->insertBefore(const_cast<llvm::AllocaInst*>(variable)->getIterator());
            copies[variable] = own;
        }
        llvm::SmallVector<llvm::BasicBlock*> blocks;
        blocks.reserve(plan_.blocks.size());
        for (const llvm::BasicBlock* block : plan_.blocks) {
            llvm::BasicBlock* const copy = llvm::CloneBasicBlock(block, copies, ".passing", &function_);
            copies[block] = copy;
            blocks.push_back(copy);
        }
        copies[plan_.preheader] = &from;
        copies[plan_.exit] = &done;
        llvm::remapInstructionsInBlocks(blocks, copies);
        const auto copy_of = [&](const llvm::Value* value) { return static_cast<llvm::Value*>(copies[value]); };
        for (const llvm::BranchInst* guard : passed_guards())
            pass(*guard, *llvm::cast<llvm::BranchInst>(copy_of(guard)), copies);
        for (const ClippedLimit& limit : limits_) {
            const auto own = copies.find(limit.taken);
            copy_of(limit.choice)
                ->replaceAllUsesWith(own != copies.end() ? static_cast<llvm::Value*>(own->second) : limit.taken);
        }
        auto* const counter = llvm::cast<llvm::PHINode>(copy_of(plan_.index));
        llvm::cast<llvm::Instruction>(copy_of(plan_.compare))->setOperand(1, &count);
        // The counter starts at 0, so that several vectors may run at once.
        llvm::IRBuilder<> at(&*counter->getParent()->getFirstInsertionPt());
        llvm::Value* const item = at.CreateAdd(counter, &first, "", /*HasNUW=*/true, /*HasNSW=*/true);
        counter->replaceUsesWithIf(
            item, [&](const llvm::Use& use) { return use.getUser() != item && use.getUser() != copy_of(plan_.next); });
        share_following_loops(following_, copy_of, first, *item, *counter);
        auto* const latch = llvm::cast<llvm::BasicBlock>(copy_of(plan_.latch));
        set_loop_properties(*latch->getTerminator(), tags, plan_.loop->getLoopID());
        return counter->getParent();
    }

    // The copy of a guard keeps the terms that are the same for all work-items.
    void pass(const llvm::BranchInst& guard, llvm::BranchInst& copy, const llvm::ValueToValueMapTy& copies) const {
        llvm::IRBuilder<> at(&copy);
        llvm::Value* condition = nullptr;
        for (const GuardedLoop::Term& term : guarded_.terms_of(guard)) {
            if (!guarded_.is_invariant(*term.condition))
                continue;
            const auto own = copies.find(term.condition);
            llvm::Value* const holds = own != copies.end() ? static_cast<llvm::Value*>(own->second) : term.condition;
            llvm::Value* const wanted = term.is_wanted ? holds : at.CreateNot(holds);
            condition = condition != nullptr ? at.CreateLogicalAnd(condition, wanted) : wanted;
        }
        const bool enters_if_true = guarded_.enters_if_true(guard);
        if (condition != nullptr) {
            copy.setCondition(enters_if_true ? condition : at.CreateNot(condition));
            return;
        }
        llvm::BasicBlock* const enters = copy.getSuccessor(enters_if_true ? 0 : 1);
        llvm::BasicBlock* empty = copy.getSuccessor(enters_if_true ? 1 : 0);
        empty->removePredecessor(copy.getParent());
        at.CreateBr(enters);
        copy.eraseFromParent();
        while (llvm::pred_empty(empty)) {
            llvm::BasicBlock* const next = empty->getSingleSuccessor();
            llvm::DeleteDeadBlock(empty);
            empty = next;
        }
    }

    const LanePlan& plan_;
    const LaneShapes* shapes_;
    GuardedLoop guarded_;
    const ItemRanges ranges_;
    llvm::SmallVector<ClippedLimit, 4> limits_;
    FollowingLoops following_;
    llvm::Function& function_;
    llvm::LLVMContext& context_;
};

}  // namespace

void leave_out_idle_end(LanePlan& plan, const LaneShapes& shapes, unsigned width) {
    if (llvm::isa<llvm::ConstantInt>(plan.count))
        return;
    if (llvm::Value* const needed = PassingItems(plan, &shapes).needed_items(width)) {
        plan.compare->setOperand(1, needed);
        plan.count = needed;
    }
}

void leave_out_idle_end(llvm::Loop& loop) {
    const GuardedLoop guarded(loop);
    if (!guarded.has_guards())
        return;
    if (const auto* items = llvm::dyn_cast<llvm::ConstantInt>(guarded.count());
        items != nullptr && items->getValue().ult(unrolled_items_max))
        return;
    LanePlan plan(1);
    plan.loop = &loop;
    plan.header = &guarded.header();
    plan.preheader = guarded.preheader();
    plan.count = guarded.count();
    if (llvm::Value* const needed = PassingItems(plan, nullptr).needed_items(1)) {
        auto* const latch = llvm::cast<llvm::BranchInst>(guarded.latch()->getTerminator());
        llvm::cast<llvm::ICmpInst>(latch->getCondition())->setOperand(1, needed);
    }
}

bool separate_passing_items(const LanePlan& plan, const LaneShapes& shapes, unsigned width, Masks masks) {
    return PassingItems(plan, &shapes).separate(width, masks);
}

bool separate_clipped_items(const LanePlan& plan, unsigned width) {
    return PassingItems(plan, nullptr).separate_clipped(width);
}

}  // namespace polder::compiler::workgroup
