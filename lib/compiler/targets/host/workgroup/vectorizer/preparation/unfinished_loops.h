// The loops over work-items that the vectorizer has not finished, and the analyses of the function for them.
//
// A kernel with hundreds of barriers has as many such loops, and analyses of its whole function for each of them would take quadratic time. Lanes
// for one loop add blocks around it, and change no block of the other loops. So one analysis serves many loops: what it says about the blocks of a
// loop, and about the loops around it, stays right. It does not know the blocks that were added.
//
// Analyses are made anew when a loop was divided or unrolled, which makes loops and deletes blocks, and for loops with inner loops, for which the
// vectorizer uses LLVM's scalar evolution.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Dominators.h>
#include <optional>

namespace polder::compiler::workgroup {

[[nodiscard]] bool is_tagged(const llvm::Loop& loop, const char* tag);

// The loops with the tag, outer loops before inner ones.
[[nodiscard]] llvm::SmallVector<llvm::Loop*> tagged_loops(const llvm::LoopInfo& loops, const char* tag);

class UnfinishedLoops {
public:
    // `tag`: of the loops. The vectorizer removes it from those that it has finished.
    UnfinishedLoops(llvm::Function& function, const char* tag) : function_(function), tag_(tag) {}

    // The first unfinished loop, with its analyses; null when there is none. The same as before when that one still has the tag.
    [[nodiscard]] llvm::Loop* next();

    // Of the loop that next() has returned.
    [[nodiscard]] llvm::LoopInfo& loops() { return known_->loops; }
    [[nodiscard]] llvm::DominatorTree& dominators() { return known_->dominators; }
    [[nodiscard]] const llvm::PostDominatorTree& post_dominators();

    // The vectorizer made other loops of the one that next() has returned.
    void forget_analyses() { known_.reset(); }

    // How often the whole function was analysed.
    [[nodiscard]] unsigned analyses() const { return analyses_; }

private:
    struct Known {
        explicit Known(llvm::Function& function) : dominators(function), loops(dominators) {}
        llvm::DominatorTree dominators;
        llvm::LoopInfo loops;
        std::optional<llvm::PostDominatorTree> post_dominators;
    };

    void analyse();

    llvm::Function& function_;
    const char* const tag_;
    std::optional<Known> known_;
    llvm::SmallVector<llvm::Loop*> unfinished_;  // the first one comes last
    bool is_used_ = false;  // whether known_ served a loop already
    unsigned analyses_ = 0;
};

}  // namespace polder::compiler::workgroup
