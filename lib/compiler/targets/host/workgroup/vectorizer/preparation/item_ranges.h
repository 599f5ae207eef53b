// The work-items of a loop for which a comparison holds: those between two numbers, which are computed before the loop.
//
// The numbers may be too close: where a sum wraps around, or a condition holds in two ranges, only one of them is taken. So all that has to be right is
// that the comparison holds within.
#pragma once

#include "guarded_loop.h"

#include <llvm/IR/InstrTypes.h>
#include <optional>

namespace polder::compiler::workgroup {

// The work-items from `begin` to the one before `end`.
struct ItemRange {
    llvm::Value* begin = nullptr;
    llvm::Value* end = nullptr;
};

// `sum` compared with `bound`, which is the same for all work-items. From one work-item to the next, the sum increases by 1, modulo 2^bits.
// Where `extended` is not null, this is true only as long as `extended` does not wrap around.
struct ItemComparison {
    llvm::CmpInst::Predicate predicate;
    llvm::Value *sum, *bound, *extended;
    bool is_extended_signed;
};

// `count`: of the work-items.
class ItemRanges {
public:
    ItemRanges(const GuardedLoop& loop, llvm::Value* count) : loop_(loop), count_(count) {}

    // Nothing where the term has another form.
    [[nodiscard]] std::optional<ItemComparison> comparison_of(const GuardedLoop::Term& term) const;
    [[nodiscard]] std::optional<ItemComparison> comparison_of(llvm::CmpInst::Predicate predicate, llvm::Value* left,
                                                              llvm::Value* right) const;

    // Where the comparison holds, as numbers of work-items.
    [[nodiscard]] ItemRange range_of(FoldingBuilder& before, const ItemComparison& comparison) const;
    // A number of work-items behind which none has a sum below the bound. All of them where a sum wraps around.
    [[nodiscard]] llvm::Value* end_of(FoldingBuilder& before, const ItemComparison& comparison) const;

private:
    llvm::Value* at_first(FoldingBuilder& before, llvm::Value& value) const;
    llvm::Value* items(FoldingBuilder& before, llvm::Value* number) const;
    llvm::Value* items_before_wrap(FoldingBuilder& before, llvm::Value* first, bool is_signed) const;

    const GuardedLoop& loop_;
    llvm::Value* const count_;
};

// Whether the sum is below the bound, or equal to it.
[[nodiscard]] bool is_below(llvm::CmpInst::Predicate predicate);

}  // namespace polder::compiler::workgroup
