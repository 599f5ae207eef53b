#include "unfinished_loops.h"

#include <algorithm>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Transforms/Utils/UnrollLoop.h>

namespace polder::compiler::workgroup {

bool is_tagged(const llvm::Loop& loop, const char* tag) {
    const llvm::MDNode* id = loop.getLoopID();
    return id && llvm::GetUnrollMetadata(const_cast<llvm::MDNode*>(id), tag);
}

llvm::SmallVector<llvm::Loop*> tagged_loops(const llvm::LoopInfo& loops, const char* tag) {
    llvm::SmallVector<llvm::Loop*> tagged;
    llvm::copy_if(loops.getLoopsInPreorder(), std::back_inserter(tagged),
                  [&](const llvm::Loop* loop) { return is_tagged(*loop, tag); });
    return tagged;
}

llvm::Loop* UnfinishedLoops::next() {
    if (!known_)
        analyse();
    while (!unfinished_.empty() && !is_tagged(*unfinished_.back(), tag_))
        unfinished_.pop_back();
    if (unfinished_.empty())
        return nullptr;
    if (is_used_ && !unfinished_.back()->isInnermost())
        analyse();
    is_used_ = true;
    return unfinished_.back();
}

const llvm::PostDominatorTree& UnfinishedLoops::post_dominators() {
    if (!known_->post_dominators)
        known_->post_dominators.emplace(function_);
    return *known_->post_dominators;
}

void UnfinishedLoops::analyse() {
    ++analyses_;
    known_.reset();  // the memory of the earlier analyses is free for these
    known_.emplace(function_);
    unfinished_ = tagged_loops(known_->loops, tag_);
    std::ranges::reverse(unfinished_);
    is_used_ = false;
}

}  // namespace polder::compiler::workgroup
