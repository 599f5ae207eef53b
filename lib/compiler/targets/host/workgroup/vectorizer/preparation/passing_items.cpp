// Each term of a guard that compares a bound with a sum of the loop's counter holds between two numbers, which are computed before the loop. They may
// be too close: where a sum wraps around, or a condition holds in two ranges, only one of them is taken. So all that has to be right is that the
// terms hold within.
#include "passing_items.h"

#include "guarded_loop.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler::workgroup {

namespace {

constexpr size_t passed_instructions_max = 160;  // the body is emitted once more
// Fewer vectors in a row save less than it costs to change between the loops, unless they are the whole row.
constexpr unsigned vectors_min = 3;

// The work-items from `begin` to the one before `end`.
struct Range {
    llvm::Value* begin = nullptr;
    llvm::Value* end = nullptr;
};

// A loop with a constant number of work-items may be unrolled if they are fewer.
constexpr uint64_t unrolled_items_max = 64;

class PassingItems {
public:
    // `shapes`: null where the loop is not to be divided.
    PassingItems(const LanePlan& plan, const LaneShapes* shapes)
        : plan_(plan), shapes_(shapes), guarded_(*plan.loop), function_(*plan.header->getParent()),
          context_(function_.getContext()) {}

    bool separate(unsigned width, Masks masks) {
        if (plan_.kind == LoopKind::sub_group || !plan_.loop->isInnermost() || !guarded_.has_guards() ||
            llvm::findOptionMDForLoop(plan_.loop, passing_items_tag) != nullptr || !are_masks_dear(masks) ||
            !are_known())
            return false;
        emit(width);
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
                const auto comparison = guarded_.is_invariant(*term.condition) ? std::nullopt : comparison_of(term);
                if (!comparison || !is_below(comparison->predicate))
                    continue;
                llvm::Value* const its_end = end_of(before, *comparison);
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
        size_t size = 0;
        bool accesses_memory = false;
        for (llvm::BasicBlock* block : plan_.blocks) {
            size += block->size();
            for (llvm::Instruction& instruction : *block) {
                const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
                accesses_memory |= address != nullptr && plan_.is_masked(block) && !shapes_->of(address).is_uniform() &&
                                   (masks == Masks::dear || llvm::getLoadStoreType(&instruction)->isVectorTy());
            }
        }
        return accesses_memory && size <= passed_instructions_max;
    }

    // Whether there are guards whose terms all hold between two numbers, or are the same for all work-items.
    [[nodiscard]] bool are_known() const {
        bool is_some_known = false;
        for (const llvm::BranchInst* guard : guarded_.guards())
            for (const GuardedLoop::Term& term : guarded_.terms_of(*guard)) {
                if (guarded_.is_invariant(*term.condition))
                    continue;
                if (!comparison_of(term))
                    return false;
                is_some_known = true;
            }
        return is_some_known;
    }

    // `sum` compared with `bound`, which is the same for all work-items. From one work-item to the next, the sum increases by 1, modulo 2^bits.
    // Where `extended` is not null, this is true only as long as `extended` does not wrap around.
    struct Comparison {
        llvm::CmpInst::Predicate predicate;
        llvm::Value *sum, *bound, *extended;
        bool is_extended_signed;
    };

    [[nodiscard]] std::optional<Comparison> comparison_of(const GuardedLoop::Term& term) const {
        auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(term.condition);
        if (compare == nullptr)
            return std::nullopt;
        Comparison result{.predicate = term.is_wanted ? compare->getPredicate() : compare->getInversePredicate(),
                          .sum = compare->getOperand(0),
                          .bound = compare->getOperand(1),
                          .extended = nullptr,
                          .is_extended_signed = false};
        if (guarded_.is_invariant(*result.sum)) {
            std::swap(result.sum, result.bound);
            result.predicate = llvm::CmpInst::getSwappedPredicate(result.predicate);
        }
        llvm::Value* counted = result.sum;
        if (auto* const extension = llvm::dyn_cast<llvm::CastInst>(counted);
            extension != nullptr && llvm::isa<llvm::SExtInst, llvm::ZExtInst>(extension)) {
            counted = result.extended = extension->getOperand(0);
            result.is_extended_signed = llvm::isa<llvm::SExtInst>(extension);
        }
        const auto is_word = [](const llvm::Type& type) { return type.isIntegerTy(32) || type.isIntegerTy(64); };
        // Where a sum is another number than the bound, only those above it are taken.
        if (result.predicate == llvm::CmpInst::ICMP_NE)
            result.predicate = llvm::CmpInst::ICMP_UGT;
        if (result.predicate == llvm::CmpInst::ICMP_EQ || !guarded_.is_invariant(*result.bound) ||
            !is_word(*counted->getType()) || !is_word(*result.sum->getType()) || guarded_.step_of(*counted) != 1)
            return std::nullopt;
        return result;
    }

    // Where the guards hold ------------------------------------------------------------------------------

    llvm::Value* at_first(FoldingBuilder& before, llvm::Value& value) const {
        llvm::Value* const zero = llvm::ConstantInt::get(guarded_.counter()->getType(), 0);
        return frozen(before, *guarded_.at_counter(before, value, zero));
    }

    // As many work-items as `number` says, at most all.
    llvm::Value* items(FoldingBuilder& before, llvm::Value* number) const {
        llvm::Value* const wide = before.CreateZExtOrTrunc(number, plan_.count->getType());
        return before.CreateBinaryIntrinsic(llvm::Intrinsic::umin, wide, plan_.count);
    }

    // How many work-items `first` can be incremented for until it wraps around, at most one more than all; `is_signed`: beyond the largest number.
    llvm::Value* items_before_wrap(FoldingBuilder& before, llvm::Value* first, bool is_signed) const {
        if (is_signed)
            first = with_other_sign(before, first);
        return one_more(before, items(before, before.CreateNot(first)));
    }

    static llvm::Value* one_more(FoldingBuilder& before, llvm::Value* number) {
        return before.CreateAdd(number, llvm::ConstantInt::get(number->getType(), 1));
    }

    // Maps the order of numbers with a sign to that of numbers without.
    static llvm::Value* with_other_sign(FoldingBuilder& before, llvm::Value* number) {
        llvm::Type* const type = number->getType();
        return before.CreateXor(number,
                                llvm::ConstantInt::get(type, llvm::APInt::getSignMask(type->getIntegerBitWidth())));
    }

    Range range_of(FoldingBuilder& before, const Comparison& comparison) const {
        llvm::Value* first = at_first(before, *comparison.sum);
        llvm::Value* bound = at_first(before, *comparison.bound);
        if (llvm::CmpInst::isSigned(comparison.predicate)) {
            first = with_other_sign(before, first);
            bound = with_other_sign(before, bound);
        }
        llvm::Value* const none = llvm::ConstantInt::get(plan_.count->getType(), 0);
        llvm::Value* const distance =  // from the first sum up to the bound
            items(before, before.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, bound, first));
        llvm::Value* const before_wrap = items_before_wrap(before, first, false);
        Range range;
        switch (llvm::ICmpInst::getUnsignedPredicate(comparison.predicate)) {
        case llvm::CmpInst::ICMP_ULT:
        case llvm::CmpInst::ICMP_ULE: {
            const bool is_strict = comparison.predicate == llvm::CmpInst::getStrictPredicate(comparison.predicate);
            // `(uint)(x - 1) < width`: the sum of the first work-item is above the bound, and the next one is 0.
            const auto below = is_strict ? llvm::CmpInst::ICMP_ULT : llvm::CmpInst::ICMP_ULE;
            llvm::Value* const is_below = before.CreateICmp(below, first, bound);
            llvm::Value* const from_zero = is_strict ? items(before, bound) : one_more(before, items(before, bound));
            range.begin = before.CreateSelect(is_below, none, before_wrap);
            range.end = before.CreateSelect(is_below, is_strict ? distance : one_more(before, distance),
                                            before.CreateAdd(before_wrap, from_zero));
            break;
        }
        case llvm::CmpInst::ICMP_UGE: range = {distance, before_wrap}; break;
        default:
            range = {before.CreateSelect(before.CreateICmpUGT(first, bound), none, one_more(before, distance)),
                     before_wrap};
            break;
        }
        if (comparison.extended != nullptr) {
            llvm::Value* const extended = at_first(before, *comparison.extended);
            range.end = before.CreateBinaryIntrinsic(
                llvm::Intrinsic::umin, range.end, items_before_wrap(before, extended, comparison.is_extended_signed));
        }
        return range;
    }

    static bool is_below(llvm::CmpInst::Predicate predicate) {
        const auto order = llvm::ICmpInst::getUnsignedPredicate(predicate);
        return order == llvm::CmpInst::ICMP_ULT || order == llvm::CmpInst::ICMP_ULE;
    }

    // A number of work-items behind which none has a sum below the bound. All of them where a sum wraps around.
    llvm::Value* end_of(FoldingBuilder& before, const Comparison& comparison) const {
        llvm::Value* first = at_first(before, *comparison.sum);
        llvm::Value* bound = at_first(before, *comparison.bound);
        if (llvm::CmpInst::isSigned(comparison.predicate)) {
            first = with_other_sign(before, first);
            bound = with_other_sign(before, bound);
        }
        llvm::Value* end = items(before, before.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, bound, first));
        if (comparison.predicate != llvm::CmpInst::getStrictPredicate(comparison.predicate))
            end = one_more(before, end);
        llvm::Value* until_wrap = items_before_wrap(before, first, false);
        if (comparison.extended != nullptr)
            until_wrap = before.CreateBinaryIntrinsic(
                llvm::Intrinsic::umin, until_wrap,
                items_before_wrap(before, at_first(before, *comparison.extended), comparison.is_extended_signed));
        return before.CreateSelect(before.CreateICmpUGE(until_wrap, plan_.count), end, plan_.count);
    }

    // Where all guards hold, in whole vectors.
    Range whole_vectors(FoldingBuilder& before, unsigned width) const {
        Range all{llvm::ConstantInt::get(plan_.count->getType(), 0), plan_.count};
        for (const llvm::BranchInst* guard : guarded_.guards())
            for (const GuardedLoop::Term& term : guarded_.terms_of(*guard))
                if (const auto comparison =
                        guarded_.is_invariant(*term.condition) ? std::nullopt : comparison_of(term)) {
                    const Range range = range_of(before, *comparison);
                    all.begin = before.CreateBinaryIntrinsic(llvm::Intrinsic::umax, all.begin, range.begin);
                    all.end = before.CreateBinaryIntrinsic(llvm::Intrinsic::umin, all.end, range.end);
                }
        const auto whole = [&](llvm::Value* number) {
            return before.CreateAnd(number,
                                    llvm::ConstantInt::getSigned(number->getType(), -static_cast<int64_t>(width)));
        };
        all.begin = whole(before.CreateAdd(all.begin, llvm::ConstantInt::get(all.begin->getType(), width - 1)));
        all.end = whole(all.end);
        return all;
    }

    // The loops ---------------------------------------------------------------------------------------

    llvm::BasicBlock* make_block(const char* name) const {
        return llvm::BasicBlock::Create(context_, name, &function_, plan_.header);
    }

    void emit(unsigned width) {
        FoldingBuilder before(plan_.preheader, plan_.preheader->getTerminator()->getIterator(),
                              llvm::InstSimplifyFolder(function_.getDataLayout()));
        const Range passing = whole_vectors(before, width);
        llvm::Type* const type = plan_.count->getType();
        llvm::Value* const length = before.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, passing.end, passing.begin);
        llvm::Value* const has_some =
            before.CreateOr(before.CreateICmpUGE(length, llvm::ConstantInt::get(type, uint64_t{vectors_min} * width)),
                            before.CreateICmpEQ(length, plan_.count));
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
        at.CreateBr(copy_without_guards(*passing_all, *passing_done, *passing.begin, *passing_count));
        at.SetInsertPoint(passing_done);
        set_loop_properties(*at.CreateBr(part),
                            {"llvm.loop.unroll.disable", "llvm.loop.unswitch.partial.disable", items_tag});

        const auto entry = static_cast<unsigned>(plan_.index->getBasicBlockIndex(plan_.preheader));
        plan_.index->setIncomingBlock(entry, guarded);
        plan_.index->setIncomingValue(entry, start);
        plan_.compare->setOperand(1, end);
        plan_.latch->getTerminator()->replaceSuccessorWith(plan_.exit, guarded_done);
        set_loop_properties(*plan_.latch->getTerminator(), {passing_items_tag}, plan_.loop->getLoopID());
    }

    // The body for `count` work-items from `first`, which all pass the guards. Returns its first block.
    llvm::BasicBlock* copy_without_guards(llvm::BasicBlock& from, llvm::BasicBlock& done, llvm::Value& first,
                                          llvm::Value& count) {
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
        for (const llvm::BranchInst* guard : guarded_.guards())
            pass(*guard, *llvm::cast<llvm::BranchInst>(copy_of(guard)), copies);
        auto* const counter = llvm::cast<llvm::PHINode>(copy_of(plan_.index));
        llvm::cast<llvm::Instruction>(copy_of(plan_.compare))->setOperand(1, &count);
        // The counter starts at 0, so that several vectors may run at once.
        llvm::IRBuilder<> at(&*counter->getParent()->getFirstInsertionPt());
        llvm::Value* const item = at.CreateAdd(counter, &first, "", /*HasNUW=*/true, /*HasNSW=*/true);
        counter->replaceUsesWithIf(
            item, [&](const llvm::Use& use) { return use.getUser() != item && use.getUser() != copy_of(plan_.next); });
        auto* const latch = llvm::cast<llvm::BasicBlock>(copy_of(plan_.latch));
        set_loop_properties(*latch->getTerminator(), {passing_items_tag, unguarded_tag}, plan_.loop->getLoopID());
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
    const GuardedLoop guarded_;
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

}  // namespace polder::compiler::workgroup
