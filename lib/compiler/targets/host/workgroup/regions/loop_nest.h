// The loops over work-items that the code of a region is put into.
//
// One nest over the three dimensions for ordinary code. Code in which sub-groups do something together has a loop over
// sub-groups, and inside two loops over the work-items of one, for the vectorizer to turn each into one passage of lanes:
// the first for whole sub-groups; the second for any, whose missing work-items skip the body. The vectorizer takes the
// second as well where the first would rest on something that does not hold.
#pragma once

#include "targets/host/workgroup/lowering.h"
#include "targets/host/workgroup/work_item_functions.h"

namespace polder::compiler::workgroup {

// The innermost loop, and where its body finds the ids.
struct LoopNest {
    llvm::BasicBlock* head = nullptr;
    llvm::BasicBlock* entry = nullptr;  // first block of the body; has no terminator yet
    llvm::BasicBlock* latch = nullptr;
    std::array<llvm::Value*, id_count> ids{};  // by the number of `polder.local_id.<d>`
    llvm::Value* index = nullptr;  // of the work-item in its group
};

// In both: `preheader` gets the branch into the loops, and `done`, without a terminator, follows them.
struct ItemLoops {
    LoopNest nest;
    llvm::BasicBlock* done = nullptr;
};
[[nodiscard]] ItemLoops make_item_loops(const LoweredKernel& kernel, llvm::BasicBlock& preheader);

struct SubGroupLoops {
    LoopNest whole, any;
    llvm::BasicBlock* done = nullptr;
};
[[nodiscard]] SubGroupLoops make_sub_group_loops(const LoweredKernel& kernel, llvm::BasicBlock& preheader);

// Of the innermost loop: it is the vectorizer's, by `tag`; `access_group` null: nothing is promised of its accesses.
void tag_loop(const LoopNest& nest, const char* tag, llvm::MDNode* access_group);

}  // namespace polder::compiler::workgroup
