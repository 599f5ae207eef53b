// Loops of the kernel over a window around the work-item's place, which ends at the edges of the data:
//
//     for (i = max(x - r, 0); i <= min(x + r, width - 1); i++)  ...
//
// Away from the edges both limits follow the work-item by the same step, so that all work-items have as many iterations. There the loop's counter is that of
// the first work-item plus what x has grown by, and all have the first one's answer where its end is asked for.
//
// That no number wraps around is required of the work-items (item_ranges.h), not taken for granted.
#pragma once

#include "clipped_loops.h"

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>

namespace polder::compiler::workgroup {

struct FollowingLoops {
    // Choices that are what follows the work-item, away from the edges.
    llvm::SmallVector<ClippedLimit, 4> limits;
    // What must hold of a work-item besides, such as that a limit has not wrapped around.
    llvm::SmallVector<ItemComparison, 8> required;
    // Comparisons of two numbers that must hold for the first work-item: each loop is entered.
    struct Entry {
        llvm::CmpInst::Predicate predicate;
        llvm::Value *begin, *end;
    };
    llvm::SmallVector<Entry, 4> entries;
    // The counters of the loops: integers that increase by a constant.
    struct Counter {
        llvm::PHINode* phi = nullptr;
        llvm::Instruction* next = nullptr;
        bool wraps_signed = true;
    };
    llvm::SmallVector<Counter, 4> counters;
    // Instructions whose result is that of the first work-item for all: comparisons of two numbers that follow the work-item, and differences.
    llvm::SmallVector<llvm::Instruction*, 8> shared;
};

// Of the loops within `loop`. The choices are known to `guarded` then, as what follows the work-item (GuardedLoop::take). Empty where no loop has such limits.
[[nodiscard]] FollowingLoops following_loops(const llvm::Loop& loop, GuardedLoop& guarded, llvm::Value* count);

// Changes the copy of the loop for work-items from `first` that fulfil what is required. `item`: the work-item's number, which is `first` plus `index`.
// `copy_of`: of the loop's instructions; those of choices are what follows the work-item already.
void share_following_loops(const FollowingLoops& following,
                           llvm::function_ref<llvm::Value*(const llvm::Value*)> copy_of, llvm::Value& first,
                           llvm::Value& item, llvm::Value& index);

}  // namespace polder::compiler::workgroup
