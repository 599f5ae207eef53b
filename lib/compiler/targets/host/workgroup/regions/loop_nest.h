// The loops over work-items around the code of a region.
//
// Ordinary code is put into a nest of three loops, one for each dimension. Code with sub-group functions is put into a loop over
// sub-groups, which contains two loops over the work-items of one sub-group; the vectorizer replaces each by straight code for all
// lanes. The first is for whole sub-groups. The second is for any sub-group: missing work-items skip the body. It is also
// used for a whole sub-group when an assumption of the first does not hold.
#pragma once

#include "targets/host/workgroup/frame/lowering.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"

namespace polder::compiler::workgroup {

// Marks outer loops that most often have a single iteration, for targets/host/pass_gate.h.
inline constexpr const char* single_row_tag = "polder.single_row";

// The innermost loop, and where its body finds the ids.
struct LoopNest {
    llvm::BasicBlock* head = nullptr;
    llvm::BasicBlock* entry = nullptr;  // first block of the body; has no terminator yet
    llvm::BasicBlock* latch = nullptr;
    std::array<llvm::Value*, id_count> ids{};  // by the number of `polder.local_id.<d>`
    llvm::Value* index = nullptr;  // of the work-item in its group
};

// In both: `preheader` gets the branch into the loops; control leaves them to `done`, which has no terminator yet.
struct ItemLoops {
    LoopNest nest;
    llvm::BasicBlock* done = nullptr;
};
// No loops, only the group's first work-item.
[[nodiscard]] ItemLoops make_first_item(const LoweredKernel& kernel, llvm::BasicBlock& preheader);
[[nodiscard]] ItemLoops make_item_loops(const LoweredKernel& kernel, llvm::BasicBlock& preheader);

struct SubGroupLoops {
    LoopNest whole, any;
    llvm::BasicBlock* done = nullptr;
};
[[nodiscard]] SubGroupLoops make_sub_group_loops(const LoweredKernel& kernel, llvm::BasicBlock& preheader);

// Marks the innermost loop for the vectorizer. `access_group`: the accesses that do not depend on other iterations; may be null.
void tag_loop(const LoopNest& nest, const char* tag, llvm::MDNode* access_group);

}  // namespace polder::compiler::workgroup
