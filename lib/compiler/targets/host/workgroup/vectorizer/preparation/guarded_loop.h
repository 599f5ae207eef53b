// The guards of a loop over work-items: branches at the start of its body of which one side leads to the next work-item without a side effect,
// as in `if (x >= width || y >= height) return;`. A guard's condition is split into terms that must all hold, and sums of the loop's
// counter are recognised in them.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/InstSimplifyFolder.h>
#include <llvm/IR/IRBuilder.h>
#include <optional>

namespace llvm {
class BranchInst;
class Loop;
class PHINode;
}  // namespace llvm

namespace polder::compiler::workgroup {

using FoldingBuilder = llvm::IRBuilder<llvm::InstSimplifyFolder>;

class GuardedLoop {
public:
    // One of the terms that must all hold: `condition`, or its opposite.
    struct Term {
        llvm::Value* condition = nullptr;
        bool is_wanted = true;
    };

    explicit GuardedLoop(llvm::Loop& loop);

    // Whether the loop counts from 0 to a number that is known before it.
    [[nodiscard]] bool is_counted() const { return is_counted_; }
    // Whether it does, and has guards.
    [[nodiscard]] bool has_guards() const { return !guards_.empty(); }
    [[nodiscard]] llvm::ArrayRef<llvm::BranchInst*> guards() const { return guards_; }
    // Whether a work-item passes the guard when its condition is true.
    [[nodiscard]] bool enters_if_true(const llvm::BranchInst& guard) const;
    [[nodiscard]] llvm::SmallVector<Term, 4> terms_of(const llvm::BranchInst& guard) const;
    // Reduces the guard's condition to `terms`.
    void reduce(llvm::BranchInst& guard, llvm::ArrayRef<Term> terms) const;

    // Whether the value is the same for all work-items of the loop, and can be computed before it.
    [[nodiscard]] bool is_invariant(const llvm::Value& value) const;
    // The change of an integer from one work-item to the next, modulo 2^bits; nothing when it is not known to be constant.
    [[nodiscard]] std::optional<int64_t> step_of(const llvm::Value& value) const;
    // From now on `choice` is taken for `side`, one of its operands: the caller uses results only where it is.
    void take(const llvm::Instruction& choice, llvm::Value& side) { taken_[&choice] = &side; }
    // Computes, before the loop, the result that `value` has when the loop's counter is `counter`. It may be poison.
    llvm::Value* at_counter(FoldingBuilder& before, llvm::Value& value, llvm::Value* counter) const;

    [[nodiscard]] llvm::BasicBlock& header() const { return header_; }
    [[nodiscard]] llvm::BasicBlock* latch() const { return latch_; }
    [[nodiscard]] llvm::BasicBlock* preheader() const { return preheader_; }
    [[nodiscard]] llvm::BasicBlock* exit() const { return exit_; }
    [[nodiscard]] llvm::PHINode* counter() const { return counter_; }
    [[nodiscard]] llvm::Value* count() const { return count_; }

private:
    bool find_counter();
    void find_guards();
    [[nodiscard]] bool is_empty_way(llvm::BasicBlock* block) const;
    bool is_invariant(const llvm::Value& value, unsigned& budget) const;
    std::optional<int64_t> step_of(const llvm::Value& value, unsigned& budget) const;

    llvm::Loop& loop_;
    llvm::BasicBlock& header_;
    llvm::BasicBlock* const latch_;
    llvm::BasicBlock* const preheader_;
    llvm::BasicBlock* const exit_;
    llvm::PHINode* counter_ = nullptr;
    llvm::Value* count_ = nullptr;
    bool is_counted_ = false;
    llvm::SmallVector<llvm::BranchInst*, 4> guards_;
    llvm::SmallDenseMap<const llvm::Value*, llvm::Value*, 4> taken_;
};

// The value, not poison.
llvm::Value* frozen(FoldingBuilder& before, llvm::Value& value);

}  // namespace polder::compiler::workgroup
