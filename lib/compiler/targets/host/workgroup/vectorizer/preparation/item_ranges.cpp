// See item_ranges.h. Numbers with a sign are compared in the order of those without.
#include "item_ranges.h"

#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

llvm::Value* one_more(FoldingBuilder& before, llvm::Value* number) {
    return before.CreateAdd(number, llvm::ConstantInt::get(number->getType(), 1));
}

// Maps the order of numbers with a sign to that of numbers without.
llvm::Value* with_other_sign(FoldingBuilder& before, llvm::Value* number) {
    llvm::Type* const type = number->getType();
    return before.CreateXor(number, llvm::ConstantInt::get(type, llvm::APInt::getSignMask(type->getIntegerBitWidth())));
}

}  // namespace

bool is_below(llvm::CmpInst::Predicate predicate) {
    const auto order = llvm::ICmpInst::getUnsignedPredicate(predicate);
    return order == llvm::CmpInst::ICMP_ULT || order == llvm::CmpInst::ICMP_ULE;
}

std::optional<ItemComparison> ItemRanges::comparison_of(const GuardedLoop::Term& term) const {
    const auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(term.condition);
    if (compare == nullptr)
        return std::nullopt;
    return comparison_of(term.is_wanted ? compare->getPredicate() : compare->getInversePredicate(),
                         compare->getOperand(0), compare->getOperand(1));
}

std::optional<ItemComparison> ItemRanges::comparison_of(llvm::CmpInst::Predicate predicate, llvm::Value* left,
                                                        llvm::Value* right) const {
    ItemComparison result{
        .predicate = predicate, .sum = left, .bound = right, .extended = nullptr, .is_extended_signed = false};
    if (loop_.is_invariant(*result.sum)) {
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
    if (result.predicate == llvm::CmpInst::ICMP_EQ || !loop_.is_invariant(*result.bound) ||
        !is_word(*counted->getType()) || !is_word(*result.sum->getType()) || loop_.step_of(*counted) != 1)
        return std::nullopt;
    return result;
}

llvm::Value* ItemRanges::at_first(FoldingBuilder& before, llvm::Value& value) const {
    llvm::Value* const zero = llvm::ConstantInt::get(loop_.counter()->getType(), 0);
    return frozen(before, *loop_.at_counter(before, value, zero));
}

// As many work-items as `number` says, at most all.
llvm::Value* ItemRanges::items(FoldingBuilder& before, llvm::Value* number) const {
    llvm::Value* const wide = before.CreateZExtOrTrunc(number, count_->getType());
    return before.CreateBinaryIntrinsic(llvm::Intrinsic::umin, wide, count_);
}

// How many work-items `first` can be incremented for until it wraps around, at most one more than all; `is_signed`: beyond the largest number.
llvm::Value* ItemRanges::items_before_wrap(FoldingBuilder& before, llvm::Value* first, bool is_signed) const {
    if (is_signed)
        first = with_other_sign(before, first);
    return one_more(before, items(before, before.CreateNot(first)));
}

ItemRange ItemRanges::range_of(FoldingBuilder& before, const ItemComparison& comparison) const {
    llvm::Value* first = at_first(before, *comparison.sum);
    llvm::Value* bound = at_first(before, *comparison.bound);
    if (llvm::CmpInst::isSigned(comparison.predicate)) {
        first = with_other_sign(before, first);
        bound = with_other_sign(before, bound);
    }
    llvm::Value* const none = llvm::ConstantInt::get(count_->getType(), 0);
    llvm::Value* const distance =  // from the first sum up to the bound
        items(before, before.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, bound, first));
    llvm::Value* const before_wrap = items_before_wrap(before, first, false);
    ItemRange range;
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
        range.end = before.CreateBinaryIntrinsic(llvm::Intrinsic::umin, range.end,
                                                 items_before_wrap(before, extended, comparison.is_extended_signed));
    }
    return range;
}

llvm::Value* ItemRanges::end_of(FoldingBuilder& before, const ItemComparison& comparison) const {
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
    return before.CreateSelect(before.CreateICmpUGE(until_wrap, count_), end, count_);
}

}  // namespace polder::compiler::workgroup
